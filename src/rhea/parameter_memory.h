// Memory for all parameters of a model.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "rhea/components/checkpoint/named_tensor.h"
#include "rhea/ir/type.h"
#include "rhea/nn/decoder.h"
#include "rhea/nn/trace.h"

namespace rhea {

class ParameterMemory {
 public:
  // Traces the model for its parameters, stored as `dtype` (constants are f32 always); the memory
  // is not filled.
  explicit ParameterMemory(const nn::Decoder::Config& decoder, DType dtype = DType::f32);

  const std::vector<nn::Parameter>& parameters() const { return parameters_; }
  // The parameter `fqn`, for a graph that reads it as `type`. Throws Error naming both types where
  // it is stored as another one, and for an unknown name.
  const void* data(const std::string& fqn, const ir::Type& type) const;
  // The stock parts of every parameter, under their names.
  const std::vector<checkpoint::NamedTensor>& tensors() const { return tensors_; }

 private:
  std::vector<nn::Parameter> parameters_;
  std::shared_ptr<void> block_;
  std::vector<ir::Type> types_;
  std::vector<void*> data_;
  std::vector<checkpoint::NamedTensor> tensors_;
};

}  // namespace rhea
