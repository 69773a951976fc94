// The ops between two products, on the shapes of model A (4 x 512 tokens, D 768, 12 heads of 64, F
// 2048): gigabytes per second of operands and results, which memory or cache must deliver.
//
//   rows_bench [Google Benchmark options]; threads: RHEA_BENCH_THREADS, else all cores
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <cstdlib>
#include <string>

#include "rhea/ops/ops.h"
#include "rhea/ops/run_kernel.h"

namespace rhea {
namespace {

ThreadPool& pool() {
  static ThreadPool threads([] {
    const char* count = std::getenv("RHEA_BENCH_THREADS");
    return count ? std::atoi(count) : 0;
  }());
  return threads;
}

struct Node {
  const ir::OpDef* op;
  std::vector<ir::Type> in_types;
  ir::Attrs attrs;
  std::vector<ir::Type> out_types;

  Node(const ir::OpDef& row, std::vector<ir::Type> in, ir::Attrs given)
      : op(&row), in_types(std::move(in)), attrs(std::move(given)) {
    for (const auto& spec : row.attrs)
      if (!attrs.has(spec.name)) attrs.set(spec.name, *spec.fallback);
    out_types = row.infer(in_types, attrs);
  }
};

void run(benchmark::State& state, const Node& node) {
  const ir::OpInstance instance{node.op, node.in_types, node.out_types, &node.attrs};
  const ir::CpuKernel* kernel = nullptr;
  for (const auto& candidate : node.op->cpu)
    if (kernel == nullptr && candidate.isa <= active_isa() &&
        (!candidate.accepts || candidate.accepts(instance).empty()))
      kernel = &candidate;
  std::vector<std::shared_ptr<void>> memory;
  std::vector<void*> in, out;
  for (const auto* types : {&node.in_types, &node.out_types})
    for (const ir::Type& type : *types) {
      memory.push_back(ops::aligned_bytes(ir::byte_size(type)));
      (types == &node.in_types ? in : out).push_back(memory.back().get());
      if (is_float(type.dtype))
        for (int64_t i = 0; i < ir::num_elements(type.shape); ++i)
          store_from_f64(memory.back().get(), type.dtype, i,
                         static_cast<double>(i * 7919 % 257) / 64 - 2);
    }
  ops::KernelRun call(*kernel, instance, pool());
  for (auto _ : state) call(in, out);
  double bytes = 0;
  for (const auto* types : {&node.in_types, &node.out_types})
    for (const ir::Type& type : *types) bytes += static_cast<double>(ir::byte_size(type));
  state.SetBytesProcessed(static_cast<int64_t>(bytes) * state.iterations());
  state.SetLabel(std::string(kernel->name));
}

std::vector<Node> nodes(DType dtype) {
  const ir::Type model{dtype, {2048, 768}}, model_weight{dtype, {768}};
  const ir::Type heads{dtype, {2048, 12, 64}}, head_weight{dtype, {64}};
  const ir::Type hidden{dtype, {2048, 2048}}, table{DType::f32, {512, 32}};
  const ir::Attrs eps = {{"eps", 1e-5}};
  return {{ops::kRmsNorm, {model, model_weight}, eps},
          {ops::kRmsNormGrad, {model, model_weight, model}, eps},
          {ops::kRmsNorm, {heads, head_weight}, eps},
          {ops::kRmsNormGrad, {heads, head_weight, heads}, eps},
          {ops::kLayerNorm, {model, model_weight, model_weight}, eps},
          {ops::kLayerNormGrad, {model, model_weight, model}, eps},
          {ops::kRope, {heads, table, table, {DType::i32, {2048}}}, {{"interleaved", int64_t{0}}}},
          {ops::kRope, {heads, table, table, {DType::i32, {2048}}}, {{"interleaved", int64_t{1}}}},
          {ops::kSwiglu, {hidden, hidden}, {}},
          {ops::kSwigluGrad, {hidden, hidden, hidden}, {}}};
}

}  // namespace
}  // namespace rhea

int main(int argc, char** argv) {
  for (const rhea::DType dtype : {rhea::DType::bf16, rhea::DType::f32})
    for (const auto& node : rhea::nodes(dtype)) {
      const bool interleaved = node.attrs.has("interleaved") && node.attrs.flag("interleaved");
      const std::string name = fmt::format("{}/{}{}", node.op->name, to_string(node.in_types[0]),
                                           interleaved ? "/interleaved" : "");
      benchmark::RegisterBenchmark(name.c_str(), [node](benchmark::State& state) {
        rhea::run(state, node);
      })->UseRealTime();
    }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
