// Added kernels in the graphs of the run: with them and without.
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "rhea/base/error.h"
#include "rhea/check/part.h"
#include "rhea/check/subjects.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/table.h"
#include "rhea/trainer_options.h"

namespace rhea::check {
namespace {

constexpr size_t kMostInstances = 6;  // of one op in one setting

// A node by what its kernel is chosen on.
std::string types_of(const ir::Graph& graph, const ir::Node& node) {
  std::vector<std::string> in, out;
  for (const ir::ValueId id : node.inputs) in.push_back(ir::to_string(graph.type(id)));
  for (const ir::Type& type : node.outputs) out.push_back(ir::to_string(type));
  std::string attrs;
  for (const auto& [name, value] : node.attrs) {
    if (const auto* number = std::get_if<int64_t>(&value))
      attrs += fmt::format(" {}={}", name, *number);
    if (const auto* number = std::get_if<double>(&value))
      attrs += fmt::format(" {}={}", name, *number);
  }
  return fmt::format("{} -> {}{}", fmt::join(in, ", "), fmt::join(out, ", "), attrs);
}

// What became of an added kernel in the graphs of the run.
struct Fate {
  const ops::AddedKernel* added;
  bool in_dtype_of_run = false;
  bool run_uses = false;  // it ran a node of the run's own batch, and was compared there
  std::vector<std::string> refusals;  // each reason once

  void refuse(const std::string& why) {
    if (std::ranges::find(refusals, why) == refusals.end()) refusals.push_back(why);
  }
};

class KernelCheck {
 public:
  KernelCheck(const ir::OpDef& op, DType dtype_of_run, const Means& means, Report& report)
      : op_(op), dtype_of_run_(dtype_of_run), means_(means), report_(report) {
    for (const ops::AddedKernel& added : ops::added_kernels(op)) fates_.push_back({&added});
  }

  void check(const Setting& setting, ir::Graph& graph, const train_step::StepGraphs& graphs) {
    for (size_t n = 0; n < graph.nodes().size(); ++n) {
      const ir::Node& node = graph.nodes()[n];
      if (node.op != &op_) continue;
      met_ = true;
      const std::string types = types_of(graph, node);
      if (!seen_.insert(types).second) continue;
      const std::string where =
          fmt::format("{}: {} in {}", setting.text(), types, graph.scope_name(node));
      Fate* const chosen = choose(graph, node, where);
      if (chosen == nullptr) continue;
      if (compared_++ < kMostInstances)
        compare_node(graph, static_cast<int32_t>(n), graphs, setting, where, *chosen);
    }
  }
  // After the graphs of one setting.
  void end_setting(const Setting& setting) {
    if (compared_ > kMostInstances)
      report_.note(fmt::format("{}: nodes of {} other types were not compared", setting.text(),
                               compared_ - kMostInstances));
    seen_.clear();
    compared_ = noted_ = 0;
  }
  // After all settings: a kernel that nothing ran did not pass.
  void judge() const {
    for (const Fate& fate : fates_) {
      const ir::CpuKernel& kernel = fate.added->kernel;
      if (fate.run_uses) {
        if (!fate.in_dtype_of_run)
          report_.note(fmt::format("kernel {}: the run computes in {}, where it runs no node: {}",
                                   kernel.name, dtype_name(dtype_of_run_),
                                   fmt::join(fate.refusals, "; ")));
        continue;
      }
      if (met_) {
        report_.not_checked(fmt::format(
            "kernel {} of {}: no node of the run's batch runs it, so the run does not use it: {}",
            kernel.name, fate.added->origin, fmt::join(fate.refusals, "; ")));
        continue;
      }
      const SamplesRun samples = samples_run(op_, kernel);
      if (samples.count > 0)
        report_.note(
            fmt::format("kernel {}: no node of the run has this op; it was checked on {} "
                        "of the op's samples alone",
                        kernel.name, samples.count));
      else
        report_.not_checked(fmt::format(
            "kernel {} of {}: no node of the run has this op, and no sample runs it: {}",
            kernel.name, fate.added->origin, fmt::join(samples.refusals, "; ")));
    }
  }

 private:
  // The added kernel that runs the node, as the executor chooses it; the reasons of the others are
  // told.
  Fate* choose(const ir::Graph& graph, const ir::Node& node, const std::string& where) {
    std::vector<ir::Type> in;
    for (const ir::ValueId id : node.inputs) in.push_back(graph.type(id));
    const ir::OpInstance instance{&op_, in, node.outputs, &node.attrs};
    Fate* chosen = nullptr;
    for (Fate& fate : fates_) {
      const ir::CpuKernel& kernel = fate.added->kernel;
      std::string why = refusal(kernel, instance, active_isa());
      if (why.empty() && chosen == nullptr) {
        chosen = &fate;
        continue;
      }
      if (why.empty())
        why = fmt::format("kernel {} of {} comes before it and takes the node",
                          chosen->added->kernel.name, chosen->added->origin);
      fate.refuse(why);
      if (noted_++ < kMostInstances)
        report_.note(fmt::format("{}: kernel {} refuses: {}", where, kernel.name, why));
    }
    return chosen;
  }

  void compare_node(ir::Graph& graph, int32_t n, const train_step::StepGraphs& graphs,
                    const Setting& setting, const std::string& where, Fate& fate) {
    const ir::Node& node = graph.nodes()[static_cast<size_t>(n)];
    std::vector<ir::Value> arguments, results;
    for (const ir::ValueId id : node.inputs) arguments.push_back(graph.value(id));
    for (size_t i = 0; i < node.outputs.size(); ++i)
      results.push_back(graph.value({n, static_cast<int32_t>(i)}));
    const auto part = [&](bool gradients) {
      return cut_part(
          graph,
          {.arguments = arguments, .results = results, .parameters = {}, .gradients = gradients});
    };
    Question question;
    question.dtype = setting.dtype;
    question.exact = only_moves(part(false));
    question.timed = setting.of_run;
    question.other.graph = part(op_.vjp || op_.decompose);
    fill_inputs(question.other.graph,
                {.parameters = graphs.parameters,
                 .constants = graphs.constants,
                 .rope_specs = graphs.rope_specs,
                 .seq_len = setting.seq_len,
                 .vocab_size = 2},
                question.other.inputs);
    question.stock = question.other;
    question.stock.options.added_kernels = false;
    const auto answer = compare_into(report_, where, std::move(question), means_);
    const std::string expected = fmt::format("{} {}", op_.name, fate.added->kernel.name);
    if (answer && std::ranges::find(answer->other_kernels, expected) == answer->other_kernels.end())
      report_.not_checked(fmt::format("{}: the compiled part does not run kernel {}, but {}", where,
                                      fate.added->kernel.name,
                                      fmt::join(answer->other_kernels, ", ")));
    fate.run_uses |= setting.of_run;
    fate.in_dtype_of_run |= setting.of_run && setting.dtype == dtype_of_run_;
  }

  const ir::OpDef& op_;
  DType dtype_of_run_;
  const Means& means_;
  Report& report_;
  std::vector<Fate> fates_;
  std::set<std::string> seen_;       // types of nodes in this setting
  size_t compared_ = 0, noted_ = 0;  // in this setting
  bool met_ = false;
};

}  // namespace

size_t check_kernels(const TrainerConfig& config, const Means& means, Report& report) {
  std::vector<const ir::OpDef*> ops;
  for (const ir::OpDef* op : ops::all_ops()) {
    if (!ops::added_kernels(*op).empty()) ops.push_back(op);
  }
  if (ops.empty()) return 0;
  for (const ir::OpDef* op : ops) {
    std::vector<std::string> names;
    for (const ops::AddedKernel& added : ops::added_kernels(*op))
      names.push_back(fmt::format("{} of {}", added.kernel.name, added.origin));
    report.subject(
        fmt::format("kernels for {} in the run's graphs: {}", op->name, fmt::join(names, ", ")));
    KernelCheck kernel(*op, step_options(config).trace.compute_dtype, means, report);
    for (const Setting& setting : settings_of(config)) {
      std::optional<train_step::StepGraphs> graphs;
      try {
        graphs.emplace(graphs_of(config, setting));
      } catch (const Error& error) {
        // Limits of modules are fine where the run keeps them.
        const std::string text = fmt::format("{}: {}", setting.text(), error.what());
        setting.of_run ? report.fault(text) : report.note(text);
        continue;
      }
      for (ir::Graph* graph : {&graphs->microbatch, &graphs->update})
        kernel.check(setting, *graph, *graphs);
      kernel.end_setting(setting);
    }
    kernel.judge();
    report.end_subject();
  }
  return ops.size();
}

}  // namespace rhea::check
