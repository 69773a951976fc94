// The tensors that a model asks for under published names: what weights are compared with before
// they are read.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "rhea/components/checkpoint/key_map.h"
#include "rhea/components/checkpoint/named_tensor.h"
#include "rhea/components/safetensors/export.h"
#include "rhea/nn/decoder.h"

namespace rhea {

class PublishedTensors {
 public:
  // Of a model with Hugging Face's names; nothing is allocated for its weights.
  explicit PublishedTensors(const nn::Decoder::Config& decoder);

  int64_t num_parameters() const { return num_parameters_; }

  // Throws Error listing all that is missing, unexpected, of another shape or contradicting, as a
  // load of the folder would.
  void compare(const std::filesystem::path& folder) const;
  // The same for tensors that are about to be written; `where` names them in the message.
  void compare(const std::vector<safetensors::TensorSource>& tensors,
               const std::string& where) const;

 private:
  std::vector<checkpoint::NamedTensor> targets_;  // without memory
  checkpoint::KeyMap key_map_;
  int64_t num_parameters_ = 0;
};

}  // namespace rhea
