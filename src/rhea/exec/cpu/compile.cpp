// compile() and plan(): the order of the executor's own passes.
#include <memory>
#include <utility>

#include "rhea/exec/cpu/arena.h"
#include "rhea/exec/cpu/backend.h"
#include "rhea/exec/cpu/executable.h"
#include "rhea/exec/cpu/kernel_choice.h"
#include "rhea/exec/cpu/program.h"
#include "rhea/passes/donation_order.h"
#include "rhea/passes/fuse.h"
#include "rhea/passes/pipeline.h"

namespace rhea::exec::cpu {
namespace {

Program lower(const ir::Graph& graph, const CompileOptions& options) {
  auto kernels = std::make_shared<KernelChooser>(options.isa);
  passes::Pipeline pipeline({.disable_passes = options.disable_passes,
                             .dump_graphs = options.dump_graphs,
                             .name = options.name});
  ir::Graph lowered = graph;
  pipeline.run("decompose", lowered, [&](const ir::Graph& g) { return legalize(g, *kernels); });
  // An anomaly is named by the op that made it: clusters would hide it.
  if (!options.interpret && !options.detect_anomaly) pipeline.run("fuse", lowered, passes::fuse);
  pipeline.run("order", lowered, passes::order_for_donation);
  return make_program(std::move(lowered), std::move(kernels),
                      !options.interpret && pipeline.runs("zero_copy"));
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
