// A model's parameters as checkpoints and published files see them: in stock parts, under their
// names.
#pragma once
#include <string>
#include <vector>

#include "rhea/components/checkpoint/key_map.h"
#include "rhea/components/checkpoint/named_tensor.h"
#include "rhea/config/trainer_config.h"
#include "rhea/nn/decoder.h"

namespace rhea {

// The stock parts of a parameter, or of anything with its shape (`data`), as <prefix><fqn><suffix>.
// Parts are ranges of rows, so nothing is copied.
void add_parts(std::vector<checkpoint::NamedTensor>& out, const nn::Parameter& parameter,
               DType dtype, void* data, const std::string& prefix = "",
               const std::string& suffix = "");

// Of a model whose parameters have the names of published files.
checkpoint::KeyMap published_key_map(const nn::Decoder::Config& model);
// Of a run's model: the key rules of its family, where it has any.
checkpoint::KeyMap make_key_map(const ModelSpec& spec);

}  // namespace rhea
