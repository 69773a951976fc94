#include "rhea/parameter_memory.h"

#include <fmt/format.h>

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
  const auto type = [&](const nn::Parameter& parameter) -> const ir::Type& {
    return graph.type(graph.find_input(parameter.fqn)->value);
  };
  const auto bytes = [&](const nn::Parameter& parameter) {
    return round_up(ir::byte_size(type(parameter)), 64);
  };
  int64_t total = 0;
  for (const auto& parameter : parameters_) total += bytes(parameter);
  require_memory(static_cast<double>(total),
                 fmt::format("the model, whose weights are read as {},", dtype_name(dtype)),
                 "a smaller model or a machine with more memory is needed");
  block_ = exec::cpu::allocate_state(total);
  char* at = static_cast<char*>(block_.get());
  for (const auto& parameter : parameters_) {
    data_.push_back(at);
    add_parts(tensors_, parameter, type(parameter).dtype, at);
    at += bytes(parameter);
  }
}

}  // namespace rhea
