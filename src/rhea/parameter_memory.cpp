#include "rhea/parameter_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/base/machine_memory.h"
#include "rhea/exec/cpu/backend.h"
#include "rhea/parameter_tensors.h"

namespace rhea {

ParameterMemory::ParameterMemory(const nn::Decoder::Config& decoder, DType dtype) {
  ir::Graph graph;
  nn::Trace trace(graph,
                  {.num_tokens = 1, .seq_len = 1, .param_dtype = dtype, .compute_dtype = dtype});
  nn::logits(trace, decoder);
  parameters_ = trace.parameters();
  parameters_.insert(parameters_.end(), trace.constants().begin(), trace.constants().end());
  for (const auto& parameter : parameters_)
    types_.push_back(graph.type(graph.find_input(parameter.fqn)->value));
  const auto bytes = [](const ir::Type& type) { return round_up(ir::byte_size(type), 64); };
  int64_t total = 0;
  for (const ir::Type& type : types_) total += bytes(type);
  require_memory(static_cast<double>(total),
                 fmt::format("the model, whose weights are read as {},", dtype_name(dtype)),
                 "a smaller model or a machine with more memory is needed");
  block_ = exec::cpu::allocate_state(total);
  char* at = static_cast<char*>(block_.get());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    data_.push_back(at);
    add_parts(tensors_, parameters_[i], types_[i].dtype, at);
    at += bytes(types_[i]);
  }
}

const void* ParameterMemory::data(const std::string& fqn, const ir::Type& type) const {
  const auto found = std::ranges::find(parameters_, fqn, &nn::Parameter::fqn);
  if (found == parameters_.end()) throw Error("the model has no parameter {}", fqn);
  const auto i = static_cast<size_t>(found - parameters_.begin());
  if (types_[i] != type)
    throw Error(
        "the parameter {} is held as {}, and the graph reads it as {}; read the model in the dtype "
        "that the graph is traced for",
        fqn, ir::to_string(types_[i]), ir::to_string(type));
  return data_[i];
}

}  // namespace rhea
