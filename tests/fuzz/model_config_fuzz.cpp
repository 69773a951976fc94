// Fuzz target: a published config.json. Any bytes give a decoder or an Error, also with numbers of
// the run in it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rhea/base/error.h"
#include "rhea/models/hf/config_json.h"
#include "rhea/models/hf/override_config.h"

namespace hf = rhea::models::hf;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    hf::parse_config(text, "fuzz");
  } catch (const rhea::Error&) {
  }
  rhea::HfOverridesConfig overrides;
  overrides.dim = 64;
  overrides.n_layers = 1;
  overrides.rope_theta = 1e6;
  overrides.num_experts = 4;
  try {
    hf::parse_config(hf::override_config(text, "fuzz", overrides).json, "fuzz");
  } catch (const rhea::Error&) {
  }
  return 0;
}
