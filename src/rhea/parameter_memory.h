// Memory for all parameters of a model.
#pragma once
#include <memory>
#include <vector>

#include "rhea/components/checkpoint/named_tensor.h"
#include "rhea/nn/decoder.h"
#include "rhea/nn/trace.h"

namespace rhea {

class ParameterMemory {
 public:
  // Traces the model for its parameters, stored as `dtype` (constants are f32 always); the memory
  // is not filled.
  explicit ParameterMemory(const nn::Decoder::Config& decoder, DType dtype = DType::f32);

  const std::vector<nn::Parameter>& parameters() const { return parameters_; }
  // Of parameters()[i].
  void* data(size_t i) const { return data_[i]; }
  // The stock parts of every parameter, under their names.
  const std::vector<checkpoint::NamedTensor>& tensors() const { return tensors_; }

 private:
  std::vector<nn::Parameter> parameters_;
  std::shared_ptr<void> block_;
  std::vector<void*> data_;
  std::vector<checkpoint::NamedTensor> tensors_;
};

}  // namespace rhea
