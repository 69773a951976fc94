// compile() and plan(): the order of the executor's own passes.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "rhea/exec/cpu/arena.h"
#include "rhea/exec/cpu/arena_layout.h"
#include "rhea/exec/cpu/backend.h"
#include "rhea/exec/cpu/executable.h"
#include "rhea/exec/cpu/kernel_choice.h"
#include "rhea/exec/cpu/program.h"
#include "rhea/ops/table.h"
#include "rhea/passes/donation_order.h"
#include "rhea/passes/fuse.h"
#include "rhea/passes/pipeline.h"

namespace rhea::exec::cpu {
namespace {

// What runs, a line per kernel call.
std::string steps_text(const Program& program) {
  std::string text;
  for (const NodeReport& step : make_reports(program))
    text += fmt::format("{} {}  kernel {}  [{}]\n", step.op, step.types, step.kernel, step.fqn);
  return text;
}

// A kernel from outside that runs the node would not be part of a cluster.
bool runs_alone(const ir::Graph& graph, const ir::Node& node, const CompileOptions& options) {
  if (!options.added_kernels || ops::added_kernels(*node.op).empty()) return false;
  std::vector<ir::Type> in;
  for (const ir::ValueId id : node.inputs) in.push_back(graph.type(id));
  return ops::has_added_kernel({node.op, in, node.outputs, &node.attrs}, options.isa);
}

Program lower(const ir::Graph& graph, const CompileOptions& options) {
  auto kernels = std::make_shared<KernelChooser>(options.isa, options.added_kernels);
  passes::Pipeline pipeline({.disable_passes = options.disable_passes,
                             .dump_graphs = options.dump_graphs,
                             .name = options.name});
  ir::Graph lowered = graph;
  pipeline.run("decompose", lowered, [&](const ir::Graph& g) { return legalize(g, *kernels); });
  // An anomaly is named by the op that made it: clusters would hide it.
  if (!options.interpret && !options.detect_anomaly) {
    pipeline.run("fuse", lowered, [&](const ir::Graph& g) {
      return passes::fuse_except(
          g, [&](const ir::Node& node) { return runs_alone(g, node, options); });
    });
  }
  pipeline.run("order", lowered, passes::order_for_donation);
  Program program = make_program(std::move(lowered), std::move(kernels),
                                 !options.interpret && pipeline.runs("zero_copy"));
  if (!options.dump_graphs.empty()) pipeline.dump("zero_copy", steps_text(program));
  return program;
}

std::vector<Program> lower_all(std::span<const TurnGraph> graphs, ArenaPeak* peak = nullptr) {
  std::vector<Program> programs;
  std::vector<Turn> turns;
  programs.reserve(graphs.size());
  bool share = true;
  for (const TurnGraph& turn : graphs) {
    programs.push_back(lower(*turn.graph, turn.options));
    turns.push_back({&programs.back(), turn.optional, turn.repeats});
    share = share &&
            passes::Pipeline({.disable_passes = turn.options.disable_passes}).runs("share_arena");
  }
  auto fullest = lay_out_arena(turns, share);
  if (peak != nullptr) *peak = std::move(fullest);
  return programs;
}

PlanReport report_of(const Program& program, int num_threads) {
  PlanReport report{with_scratch(program.memory, num_threads), make_reports(program), {}};
  // Results that the copies at the end read live one step longer than the last kernel.
  const int32_t last_call = program.num_kernel_steps - 1;
  for (const ArenaBuffer& buffer : program.buffers)
    if (!buffer.workspace)
      report.values.push_back({buffer.life.first, std::min(buffer.life.last, last_call),
                               buffer.offset, buffer.life.bytes});
  return report;
}

}  // namespace

TurnsPlan plan_turns(std::span<const TurnGraph> graphs, int num_threads) {
  TurnsPlan plan;
  for (const Program& program : lower_all(graphs, &plan.peak))
    plan.graphs.push_back(report_of(program, num_threads));
  return plan;
}

std::vector<std::unique_ptr<CpuExecutable>> compile_turns(std::span<const TurnGraph> graphs,
                                                          ThreadPool& pool,
                                                          const std::shared_ptr<Arena>& arena) {
  std::vector<std::unique_ptr<CpuExecutable>> made;
  auto programs = lower_all(graphs);
  for (size_t i = 0; i < graphs.size(); ++i)
    made.push_back(std::make_unique<ProgramExecutable>(std::move(programs[i]), pool, arena,
                                                       graphs[i].options));
  return made;
}

PlanReport plan(const ir::Graph& graph, int num_threads, const CompileOptions& options) {
  return std::move(plan_turns(std::vector<TurnGraph>{{&graph, options}}, num_threads).graphs[0]);
}

std::unique_ptr<CpuExecutable> compile(const ir::Graph& graph, ThreadPool& pool,
                                       std::shared_ptr<Arena> arena,
                                       const CompileOptions& options) {
  return std::move(compile_turns(std::vector<TurnGraph>{{&graph, options}}, pool, arena)[0]);
}

}  // namespace rhea::exec::cpu
