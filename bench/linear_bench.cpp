// Matrix products, head and loss, optimizer: every kernel of a row as a share of the peak of the
// machine, measured in this run.
//   build/release/bench/linear_bench [--benchmark_filter=...]      threads: environment variable
//   RHEA_BENCH_THREADS
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>

#include "rhea/base/rng.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/peak.h"
#include "rhea/ops/run_kernel.h"

namespace rhea::ops {
namespace {

using ir::Layout;
using ir::OpInstance;
using ir::Type;

ThreadPool& pool() {
  static ThreadPool made([] {
    const char* text = std::getenv("RHEA_BENCH_THREADS");
    return text == nullptr ? 0 : std::atoi(text);
  }());
  return made;
}

double peak(DType dtype) {
  static const double f32 = measure_peak_flops(DType::f32, pool(), 0.5),
                      bf16 = measure_peak_flops(DType::bf16, pool(), 0.5);
  return dtype == DType::bf16 ? bf16 : f32;
}

ir::Attrs completed(const OpDef& op, ir::Attrs attrs) {
  for (const auto& spec : op.attrs) {
    if (!attrs.has(spec.name) && spec.fallback) attrs.set(spec.name, *spec.fallback);
  }
  return attrs;
}

// A node with operands of its own, filled with small numbers (integers: 0 .. 255).
struct Case {
  const OpDef* op;
  std::vector<Type> in, out;
  ir::Attrs attrs;
  std::vector<std::shared_ptr<void>> memory;
  std::vector<void*> in_data, out_data;

  Case(const OpDef& row, std::vector<Type> operands, ir::Attrs given)
      : op(&row), in(std::move(operands)), attrs(completed(row, std::move(given))) {
    out = op->infer(in, attrs);
    for (size_t i = 0; i < in.size(); ++i) {
      memory.push_back(aligned_bytes(byte_size(in[i])));
      in_data.push_back(memory.back().get());
      const int64_t count = byte_size(in[i]) / dtype_size(in[i].dtype);
      for (int64_t e = 0; e < count; ++e) {
        const double random = rng_uniform({i + 1}, static_cast<uint64_t>(e % 65536));
        store_from_f64(in_data.back(), in[i].dtype, e,
                       is_float(in[i].dtype) ? random * 0.1 : static_cast<double>(e % 256));
      }
    }
    for (const Type& type : out) {
      memory.push_back(aligned_bytes(byte_size(type)));
      out_data.push_back(memory.back().get());
    }
  }
};

void bench(benchmark::State& state, const Case& c, const ir::CpuKernel& kernel) {
  const OpInstance node{c.op, c.in, c.out, &c.attrs};
  KernelRun run(kernel, node, pool());
  const ir::Cost cost = c.op->cost(node);
  double best = 1e9;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    run(c.in_data, c.out_data);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
  }
  const double runs = static_cast<double>(state.iterations());
  state.counters["GB/s"] =
      benchmark::Counter(cost.bytes * runs * 1e-9, benchmark::Counter::kIsRate);
  state.counters["share"] =
      benchmark::Counter(cost.flops * runs / peak(c.in[0].dtype), benchmark::Counter::kIsRate);
  state.counters["best"] = cost.flops / best / peak(c.in[0].dtype);
}

void add(const std::string& name, const OpDef& op, const std::vector<Type>& in,
         const ir::Attrs& attrs) {
  // The operands are made when a benchmark runs: all cases together would not fit a small machine.
  auto make = [&op, in, attrs] { return std::make_shared<Case>(op, in, attrs); };
  const ir::Attrs probe = completed(op, attrs);
  const auto out = op.infer(in, probe);
  for (const auto& kernel : op.cpu) {
    if (kernel.isa > active_isa() ||
        (kernel.accepts && !kernel.accepts({&op, in, out, &probe}).empty()))
      continue;
    if (kernel.name == "plain" && ir::num_elements(in[0].shape) > 100000) continue;  // minutes
    benchmark::RegisterBenchmark(
        fmt::format("{}/{}", name, kernel.name).c_str(),
        [make, &kernel](benchmark::State& state) { bench(state, *make(), kernel); })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond)
        ->MinTime(0.3);
  }
}

struct Linear {
  const char* name;
  int64_t tokens, n, k;
};

void add_products(DType t) {
  const std::string dtype(dtype_name(t));
  for (const auto& [name, T, N, K] :
       {Linear{"A_qkv", 2048, 2304, 768}, Linear{"A_o", 2048, 768, 768},
        Linear{"A_gate", 2048, 2048, 768}, Linear{"A_down", 2048, 768, 2048},
        Linear{"debug_qkv", 16384, 512, 256}, Linear{"debug_down", 16384, 256, 768}}) {
    const auto attrs = [](int64_t lhs, int64_t rhs, DType out) {
      return ir::Attrs{{"lhs_contract", lhs}, {"rhs_contract", rhs}, {"dtype", out}};
    };
    add(fmt::format("{}/forward_packed/{}", dtype, name), kDotGeneral,
        {{t, {T, K}}, {t, {N, K}, Layout::panels_nk}}, attrs(1, 1, t));
    add(fmt::format("{}/forward/{}", dtype, name), kDotGeneral, {{t, {T, K}}, {t, {N, K}}},
        attrs(1, 1, t));
    add(fmt::format("{}/input_gradient_packed/{}", dtype, name), kDotGeneral,
        {{t, {T, N}}, {t, {N, K}, Layout::panels_kn}}, attrs(1, 0, t));
    add(fmt::format("{}/input_gradient/{}", dtype, name), kDotGeneral, {{t, {T, N}}, {t, {N, K}}},
        attrs(1, 0, t));
    add(fmt::format("{}/weight_gradient/{}", dtype, name), kDotGeneral, {{t, {T, N}}, {t, {T, K}}},
        attrs(0, 0, DType::f32));
    for (const Layout layout : {Layout::panels_nk, Layout::panels_kn})
      add(fmt::format("{}/pack_{}/{}", dtype, layout == Layout::panels_nk ? "nk" : "kn", name),
          kPack, {{t, {N, K}}}, {{"layout", static_cast<int64_t>(layout)}});
  }
}

void add_losses(DType t) {
  const std::string dtype(dtype_name(t));
  const auto scalar = Type{DType::f32, {}};
  for (const auto& [name, T, V, D] :
       {Linear{"A", 2048, 32000, 768}, Linear{"debug", 16384, 2048, 256}}) {
    const int64_t chunks = 8;
    add(fmt::format("{}/head/{}", dtype, name), kLinearCrossEntropy,
        {{t, {T, D}}, {t, {V, D}}, {DType::i32, {T}}, scalar}, {{"num_chunks", chunks}});
    add(fmt::format("{}/head_grad/{}", dtype, name), kLinearCrossEntropyGrad,
        {{t, {T, D}}, {t, {V, D}}, {DType::i32, {T}}, scalar, scalar}, {{"num_chunks", chunks}});
  }
}

void add_optimizers() {
  const auto f32 = [](ir::Shape shape) { return Type{DType::f32, std::move(shape)}; };
  const ir::Shape shape = {16384, 1024};
  add("adam", kAdam,
      {f32(shape), f32(shape), f32(shape), f32(shape), f32({}), f32({}), {DType::i64, {}}}, {});
  add("global_norm", kGlobalNorm, {f32(shape)}, {});
}

}  // namespace
}  // namespace rhea::ops

int main(int argc, char** argv) {
  using namespace rhea;
  ops::add_products(DType::bf16);
  ops::add_products(DType::f32);
  ops::add_losses(DType::bf16);
  ops::add_losses(DType::f32);
  ops::add_optimizers();
  benchmark::Initialize(&argc, argv);
  fmt::print("{} threads, peak f32 {:.0f}, bf16 {:.0f} GFLOP/s\n", ops::pool().num_threads(),
             ops::peak(DType::f32) * 1e-9, ops::peak(DType::bf16) * 1e-9);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
