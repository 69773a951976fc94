// Memory, time and counters of a case.
#include "bench/kernels/case.h"

#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "rhea/base/rng.h"
#include "rhea/exec/cpu/kernel_choice.h"
#include "rhea/exec/cpu/profile.h"
#include "rhea/ops/cost.h"
#include "rhea/ops/peak.h"
#include "rhea/ops/run_kernel.h"

namespace rhea::bench {
namespace {

// The kernel's name without the instruction set it is compiled for.
std::string_view stem(std::string_view name) {
  for (const std::string_view isa : {"avx512_bf16", "avx512", "avx2", "plain"})
    if (name.ends_with(isa)) return name.substr(0, name.size() - isa.size());
  return name;
}

// A case with its types worked out; operands get memory only while they are measured.
struct Node {
  Case given;
  std::vector<ir::Type> in, out;

  explicit Node(Case made) : given(std::move(made)) {
    for (const auto& spec : given.op->attrs)
      if (!given.attrs.has(spec.name) && spec.fallback) given.attrs.set(spec.name, *spec.fallback);
    for (const Operand& operand : given.operands) in.push_back(operand.type);
    out = given.op->infer(in, given.attrs);
  }
  ir::OpInstance instance() const { return {given.op, in, out, &given.attrs}; }
};

double seconds_at_limit(const Node& node, const ir::Cost& cost) {
  const MachineRates& rates = machine_rates();
  exec::cpu::NodeReport report;
  report.cost = cost;
  report.type = node.in[0];
  return exec::cpu::seconds_at_limit(
      report, {.flops_f32 = rates.flops_f32, .flops_bf16 = rates.flops_bf16, .bytes = rates.bytes});
}

void measure(benchmark::State& state, const Node& node, const ir::CpuKernel& kernel) {
  std::vector<std::shared_ptr<void>> memory;
  std::vector<void*> in, out;
  const auto allocate = [&](const ir::Type& type) {
    memory.push_back(ops::aligned_bytes(ir::byte_size(type)));
    return memory.back().get();
  };
  for (size_t i = 0; i < node.in.size(); ++i) {
    in.push_back(allocate(node.in[i]));
    fill(node.given.operands[i], i, in.back());
  }
  const ir::OpInstance instance = node.instance();
  ops::KernelRun run(kernel, instance, pool());
  out.resize(node.out.size());
  if (node.given.in_place)
    for (const auto& [operand, result] : run.plan().in_place)
      out[static_cast<size_t>(result)] = in[static_cast<size_t>(operand)];
  for (size_t j = 0; j < out.size(); ++j)
    if (out[j] == nullptr) out[j] = allocate(node.out[j]);

  double best = 1e9, total = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    run(in, out);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
    total += seconds;
  }
  ir::Cost cost = ops::cost_of(instance);
  cost.flops *= node.given.flops_scale;
  const double limit = seconds_at_limit(node, cost);
  const double mean = total / static_cast<double>(state.iterations());
  state.counters["GFLOP/s"] = cost.flops * 1e-9 / mean;
  state.counters["GB/s"] = cost.bytes * 1e-9 / mean;
  state.counters["share"] = limit / mean;
  state.counters["best"] = limit / best;
}

}  // namespace

void fill(const Operand& operand, size_t index, void* data) {
  const DType dtype = operand.type.dtype;
  const int64_t count = ir::byte_size(operand.type) / dtype_size(dtype);
  if (operand.value) {
    for (int64_t i = 0; i < count; ++i) store_from_f64(data, dtype, i, operand.value(i));
    return;
  }
  // A pattern that is repeated: drawing a vocabulary's worth of numbers takes longer than the
  // benchmark.
  const int64_t drawn = std::min<int64_t>(count, 1 << 16);
  for (int64_t i = 0; i < drawn; ++i)
    store_from_f64(data, dtype, i, 0.1 * rng_uniform({index + 1}, static_cast<uint64_t>(i)));
  auto* bytes = static_cast<char*>(data);
  for (int64_t done = drawn; done < count; done += drawn)
    std::memcpy(bytes + done * dtype_size(dtype), bytes,
                static_cast<size_t>(std::min(drawn, count - done) * dtype_size(dtype)));
}

ThreadPool& pool() {
  static ThreadPool threads([] {
    const char* count = std::getenv("RHEA_BENCH_THREADS");
    return count == nullptr ? 0 : std::atoi(count);
  }());
  return threads;
}

MachineRates measure_rates() {
  return {.flops_f32 = ops::measure_peak_flops(DType::f32, pool(), 0.5),
          .flops_bf16 = ops::measure_peak_flops(DType::bf16, pool(), 0.5),
          .bytes = ops::measure_bandwidth(pool(), 0.5)};
}

const MachineRates& machine_rates() {
  static const MachineRates rates = measure_rates();
  return rates;
}

std::string describe(const MachineRates& rates) {
  return fmt::format("f32 {:.0f} GFLOP/s, bf16 {:.0f} GFLOP/s, memory {:.1f} GB/s",
                     rates.flops_f32 * 1e-9, rates.flops_bf16 * 1e-9, rates.bytes * 1e-9);
}

void add_case(Case made) {
  const auto node = std::make_shared<const Node>(std::move(made));
  const ir::OpInstance instance = node->instance();
  std::string_view chosen;  // the first that accepts
  for (const auto& kernel : node->given.op->cpu) {
    if (kernel.isa > active_isa() || (kernel.accepts && !kernel.accepts(instance).empty()))
      continue;
    // Loops without vectors take minutes; the same kernel for older machines is measured there.
    const bool is_slow = kernel.name.ends_with("plain") || kernel.name == "f64";
    if (!chosen.empty() && (is_slow || stem(kernel.name) == stem(chosen))) continue;
    const bool first = chosen.empty();
    if (first) chosen = kernel.name;
    benchmark::RegisterBenchmark(fmt::format("{}/{}", node->given.name, kernel.name).c_str(),
                                 [node, &kernel, first](benchmark::State& state) {
                                   measure(state, *node, kernel);
                                   if (first)
                                     state.SetLabel(node->given.instead.empty()
                                                        ? "chosen"
                                                        : "training: " + node->given.instead);
                                 })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace rhea::bench
