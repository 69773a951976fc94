// Every kernel on the shapes of the models that matter, as a share of what this machine does in the
// same run. bench/README.md has the commands.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include "bench/kernels/case.h"
#include "rhea/base/cpu_features.h"

namespace {

std::string describe(const rhea::bench::MachineRates& rates) {
  return fmt::format("f32 {:.0f} GFLOP/s, bf16 {:.0f} GFLOP/s, memory {:.1f} GB/s",
                     rates.flops_f32 * 1e-9, rates.flops_bf16 * 1e-9, rates.bytes * 1e-9);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace rhea;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  bench::add_products();
  bench::add_experts();
  bench::add_attention();
  bench::add_rows();
  bench::add_loss_and_optimizer();
  benchmark::AddCustomContext("cpu", cpu_brand());
  benchmark::AddCustomContext("isa", std::string(isa_name(active_isa())));
  benchmark::AddCustomContext("threads", std::to_string(bench::pool().num_threads()));
  benchmark::AddCustomContext("limits", describe(bench::machine_rates()));
  benchmark::RunSpecifiedBenchmarks();
  // Shares are worth nothing where these differ much from those at the start.
  fmt::print(stderr, "limits at the end: {}\n", describe(bench::measure_rates()));
  benchmark::Shutdown();
}
