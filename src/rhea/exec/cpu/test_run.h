// Runs a graph on random inputs and returns the bytes of its outputs.
#pragma once
#include <fmt/format.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "rhea/base/rng.h"
#include "rhea/exec/cpu/backend.h"

namespace rhea::exec::cpu::test {

using Bytes = std::vector<std::byte>;

// Uniform in [-1, 1) from the name of the input; integers in [0, 4).
inline void fill(std::string_view name, const ir::Type& type, void* data) {
  const RngKey key = rng_key(7, name);
  for (int64_t i = 0; i < ir::num_elements(type.shape); ++i) {
    const double u = rng_uniform(key, static_cast<uint64_t>(i));
    store_from_f64(data, type.dtype, i, is_float(type.dtype) ? 2 * u - 1 : static_cast<int>(4 * u));
  }
}

struct RunResult {
  std::map<std::string, Bytes> outputs;  // donated ones: the input's buffer afterwards
  std::vector<NodeReport> nodes;
  MemoryPlan memory;
};

inline RunResult run_graph(const ir::Graph& graph, const CompileOptions& options = {},
                           int num_threads = 2, int num_runs = 1) {
  ThreadPool pool(num_threads);
  const auto exe = compile(graph, pool, make_arena(), options);
  std::map<std::string, std::shared_ptr<void>> buffers;
  for (const auto& input : graph.inputs()) {
    const ir::Type& type = graph.type(input.value);
    const auto buffer = allocate_state(ir::byte_size(type) + 64);
    fill(input.name, type, buffer.get());
    exe->bind_input(input.name, buffer.get());
    buffers[input.name] = buffer;
  }
  std::map<std::string, const void*> results;
  for (const auto& out : graph.outputs()) {
    if (!out.donates.empty()) {
      results[out.name] = buffers[out.donates].get();
      continue;
    }
    const auto buffer = allocate_state(ir::byte_size(graph.type(out.value)) + 64);
    exe->bind_output(out.name, buffer.get());
    buffers[fmt::format("result {}", out.name)] = buffer;
    results[out.name] = buffer.get();
  }
  for (int i = 0; i < num_runs; ++i) exe->run();
  RunResult result{.nodes = exe->nodes(), .memory = exe->memory()};
  for (const auto& out : graph.outputs()) {
    Bytes bytes(static_cast<size_t>(ir::byte_size(graph.type(out.value))));
    std::memcpy(bytes.data(), results[out.name], bytes.size());
    result.outputs[out.name] = std::move(bytes);
  }
  return result;
}

}  // namespace rhea::exec::cpu::test
