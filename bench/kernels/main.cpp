// Every kernel on the shapes of the models that matter, as a share of what this machine does in the
// same run. bench/README.md has the commands.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include "bench/kernels/case.h"
#include "rhea/base/cpu_features.h"

int main(int argc, char** argv) {
  using namespace rhea;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  bench::add_products();
  bench::add_experts();
  bench::add_attention();
  bench::add_rows();
  bench::add_steps();
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
