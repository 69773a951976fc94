// Numbers of the run in a published config.json.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "rhea/config/sections/hf_overrides.h"

namespace rhea::models::hf {

struct OverriddenConfig {
  std::string json;                   // the text as it was where nothing is replaced
  std::vector<std::string> replaced;  // "hidden_size 2560 -> 256"
};

// Puts the numbers of `overrides` into the text of a config.json, under the spelling that the file
// uses for them; a number that the file does not have gets the name of its model type, or Llama's,
// so that reading it refuses a field that the model type does not know. Lists with an entry per
// layer are cut to n_layers. The scaling of a rotary embedding is left alone. Throws Error naming
// `origin` when the text is no JSON object, or has one rope_theta per kind of layer.
OverriddenConfig override_config(std::string_view json, std::string_view origin,
                                 const HfOverridesConfig& overrides);

}  // namespace rhea::models::hf
