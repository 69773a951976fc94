// compile() and plan(): the order of the executor's own passes.
#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "rhea/exec/cpu/arena.h"
#include "rhea/exec/cpu/backend.h"
#include "rhea/exec/cpu/executable.h"
#include "rhea/exec/cpu/kernel_choice.h"
#include "rhea/exec/cpu/program.h"
#include "rhea/passes/fuse.h"

namespace rhea::exec::cpu {
namespace {

bool is_disabled(const CompileOptions& options, std::string_view pass) {
  return std::ranges::find(options.disable_passes, pass) != options.disable_passes.end();
}

Program lower(const ir::Graph& graph, const CompileOptions& options) {
  auto kernels = std::make_shared<KernelChooser>(options.isa);
  ir::Graph legal = legalize(graph, *kernels);
  // An anomaly is named by the op that made it: clusters would hide it.
  const bool fuses = !options.interpret && !options.detect_anomaly && !is_disabled(options, "fuse");
  if (fuses) legal = passes::fuse(legal);
  return make_program(std::move(legal), std::move(kernels), !options.interpret);
}

}  // namespace

PlanReport plan(const ir::Graph& graph, int num_threads, const CompileOptions& options) {
  const Program program = lower(graph, options);
  PlanReport report{program.memory, make_reports(program)};
  report.memory.scratch *= num_threads;
  return report;
}

std::unique_ptr<CpuExecutable> compile(const ir::Graph& graph, ThreadPool& pool,
                                       std::shared_ptr<Arena> arena,
                                       const CompileOptions& options) {
  return std::make_unique<ProgramExecutable>(lower(graph, options), pool, std::move(arena),
                                             options);
}

}  // namespace rhea::exec::cpu
