// What the executor itself costs: nodes too small to matter, and nodes just large enough for all
// threads.
#include <benchmark/benchmark.h>

#include <memory>

#include "rhea/exec/cpu/backend.h"
#include "rhea/ops/ops.h"

namespace {

using namespace rhea;

constexpr int kNodes = 500;

// A chain of `kNodes` additions of [rows, 64] on `threads` threads; reports time per node.
void executor_chain(benchmark::State& state) {
  const auto threads = static_cast<int>(state.range(0));
  const int64_t rows = state.range(1);
  ir::Graph graph;
  const ir::Value x = graph.input("x", {DType::f32, {rows, 64}});
  ir::Value y = x;
  for (int i = 0; i < kNodes; ++i) y = ops::add(y, x);
  graph.output("y", y);
  ThreadPool pool(threads);
  const auto exe =
      exec::cpu::compile(graph, pool, exec::cpu::make_arena(), {.disable_passes = {"fuse"}});
  const auto in = exec::cpu::allocate_state(rows * 256);
  const auto out = exec::cpu::allocate_state(rows * 256);
  exe->bind_input("x", in.get());
  exe->bind_output("y", out.get());
  exe->run();
  for (auto _ : state) exe->run();
  state.counters["us_per_node"] =
      benchmark::Counter(1e-6 * kNodes * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
// 1 KiB: on the calling thread alone. 128 KiB: two items. 1 MiB: 16 items.
BENCHMARK(executor_chain)
    ->ArgNames({"threads", "rows"})
    ->Args({1, 4})
    ->Args({2, 4})
    ->Args({1, 512})
    ->Args({2, 512})
    ->Args({1, 4096})
    ->Args({2, 4096})
    ->UseRealTime();

// Compiling: graphs of many equal layers, as large models have.
void executor_compile(benchmark::State& state) {
  const auto nodes = static_cast<int>(state.range(0));
  ir::Graph graph;
  const ir::Value x = graph.input("x", {DType::f32, {16, 64}});
  const ir::Value w = graph.input("w", {DType::f32, {64}});
  ir::Value y = x;
  for (int i = 0; i < nodes / 4; ++i) {
    const ir::Scope layer(graph, "layers");
    y = ops::add(ops::rms_norm(y, w, 1e-5), ops::multiply(ops::tanh(y), x));
  }
  graph.output("y", y);
  for (auto _ : state) benchmark::DoNotOptimize(exec::cpu::plan(graph, 2));
}
BENCHMARK(executor_compile)->Arg(2000)->Arg(20000)->Unit(benchmark::kMillisecond);

}  // namespace
