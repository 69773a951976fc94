// Attention forward and backward on the shapes of the models that matter, as a share of the matrix
// peak that the same machine reaches in the same minute. Only the causal half of the score matrix
// counts: forward 2 products, backward 5 (the counted 2.5 times forward).
//
//   attention_bench [Google Benchmark options]; threads: RHEA_BENCH_THREADS, else all cores
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "rhea/ops/ops.h"
#include "rhea/ops/peak.h"
#include "rhea/ops/run_kernel.h"

namespace rhea {
namespace {

struct Shape {
  const char* name;
  DType dtype;
  int64_t rows, row, heads, kv_heads, width;
};

const Shape kShapes[] = {
    {"model_a_bf16", DType::bf16, 4, 512, 12, 12, 64},
    {"model_a_f32", DType::f32, 4, 512, 12, 12, 64},
    {"llama3_debug_bf16", DType::bf16, 8, 2048, 16, 16, 16},
    {"llama3_debug_f32", DType::f32, 8, 2048, 16, 16, 16},
    {"qwen3_0.6b_512_bf16", DType::bf16, 1, 512, 16, 8, 128},
    {"qwen3_0.6b_2048_bf16", DType::bf16, 1, 2048, 16, 8, 128},
    {"qwen3_0.6b_2048_f32", DType::f32, 1, 2048, 16, 8, 128},
    {"heads_of_64_2048_bf16", DType::bf16, 2, 2048, 12, 12, 64},
    {"heads_of_96_1024_bf16", DType::bf16, 4, 1024, 8, 8, 96},
};

ThreadPool& pool() {
  static ThreadPool threads([] {
    const char* count = std::getenv("RHEA_BENCH_THREADS");
    return count ? std::atoi(count) : 0;
  }());
  return threads;
}

// A node with operands and results in huge pages, as in a trainer.
struct Node {
  std::vector<ir::Type> in_types, out_types;
  ir::Attrs attrs;
  const ir::OpDef* op = nullptr;
  std::vector<std::shared_ptr<void>> memory;
  std::vector<void*> in, out;

  Node(const ir::OpDef& row, const Shape& shape) : op(&row) {
    const int64_t tokens = shape.rows * shape.row;
    const ir::Type q{shape.dtype, {tokens, shape.heads, shape.width}};
    const ir::Type k{shape.dtype, {tokens, shape.kv_heads, shape.width}};
    in_types = {q, k, k, {DType::i32, {tokens}}};
    if (&row == &ops::kAttentionGrad)
      in_types.insert(in_types.end(), {q, {DType::f32, {tokens, shape.heads}}, q});
    attrs = {{"scale", 0.1}, {"seq_len", shape.row}, {"documents", int64_t{1}}};
    for (const auto& spec : row.attrs)
      if (!attrs.has(spec.name)) attrs.set(spec.name, *spec.fallback);
    out_types = row.infer(in_types, attrs);
    for (const ir::Type& type : in_types) in.push_back(allocate(type));
    for (const ir::Type& type : out_types) out.push_back(allocate(type));
    for (size_t i = 0; i < in_types.size(); ++i) fill(in[i], in_types[i], shape.row);
  }
  void* allocate(const ir::Type& type) {
    memory.push_back(ops::aligned_bytes(ir::byte_size(type)));
    return memory.back().get();
  }
  static void fill(void* data, const ir::Type& type, int64_t row) {
    for (int64_t i = 0; i < ir::num_elements(type.shape); ++i)
      store_from_f64(data, type.dtype, i,
                     type.dtype == DType::i32 ? static_cast<double>(i % row)
                                              : static_cast<double>(i * 7919 % 257) / 128 - 1);
  }
  ir::OpInstance instance() const { return {op, in_types, out_types, &attrs}; }
  const ir::CpuKernel& kernel() const {
    for (const auto& candidate : op->cpu)
      if (candidate.isa <= active_isa() &&
          (!candidate.accepts || candidate.accepts(instance()).empty()))
        return candidate;
    return op->cpu.back();
  }
};

void run(benchmark::State& state, const ir::OpDef& row, const Shape& shape) {
  Node node(row, shape);
  const ir::OpInstance instance = node.instance();
  ops::KernelRun call(node.kernel(), instance, pool());
  for (auto _ : state) call(node.in, node.out);
  const double flops = row.cost(instance).flops * static_cast<double>(state.iterations());
  static const double f32_peak = ops::measure_peak_flops(DType::f32, pool());
  static const double bf16_peak = ops::measure_peak_flops(DType::bf16, pool());
  const double peak = shape.dtype == DType::bf16 ? bf16_peak : f32_peak;
  state.counters["flops"] = benchmark::Counter(flops, benchmark::Counter::kIsRate);
  state.counters["share_of_peak"] = benchmark::Counter(flops / peak, benchmark::Counter::kIsRate);
  state.SetLabel(std::string(node.kernel().name));
}

}  // namespace
}  // namespace rhea

int main(int argc, char** argv) {
  for (const auto& shape : rhea::kShapes)
    for (const auto* row : {&rhea::ops::kAttention, &rhea::ops::kAttentionGrad})
      benchmark::RegisterBenchmark(
          (std::string(row->name) + "/" + shape.name).c_str(),
          [row, &shape](benchmark::State& state) { rhea::run(state, *row, shape); })
          ->UseRealTime();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
