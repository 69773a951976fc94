// Added kernels in the graphs of the run: with them and without.
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "rhea/base/error.h"
#include "rhea/check/part.h"
#include "rhea/check/subjects.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/table.h"

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

class KernelCheck {
 public:
  KernelCheck(const ir::OpDef& op, ThreadPool& pool, Report& report)
      : op_(op), pool_(pool), report_(report) {}

  void check(ir::Graph& graph, const train_step::StepGraphs& graphs, const Setting& setting) {
    for (size_t n = 0; n < graph.nodes().size() && seen_.size() < kMostInstances; ++n) {
      const ir::Node& node = graph.nodes()[n];
      if (node.op != &op_) continue;
      const std::string types = types_of(graph, node);
      if (!seen_.insert(types).second) continue;
      const std::string where =
          fmt::format("{}: {} in {}", setting.text(), types, graph.scope_name(node));
      if (!accepted(graph, node, where)) continue;
      ++compared_;
      compare_node(graph, static_cast<int32_t>(n), graphs, setting, where);
    }
  }
  void next_setting() { seen_.clear(); }
  size_t compared() const { return compared_; }
  bool met() const { return met_; }

 private:
  // Does one of the added kernels run the node? Else their reasons are told.
  bool accepted(const ir::Graph& graph, const ir::Node& node, const std::string& where) {
    met_ = true;
    std::vector<ir::Type> in;
    for (const ir::ValueId id : node.inputs) in.push_back(graph.type(id));
    const ir::OpInstance instance{&op_, in, node.outputs, &node.attrs};
    if (ops::has_added_kernel(instance, active_isa())) return true;
    for (const ops::AddedKernel& added : ops::added_kernels(op_)) {
      const ir::CpuKernel& kernel = added.kernel;
      const std::string why = kernel.isa > active_isa()
                                  ? fmt::format("needs {}", isa_name(kernel.isa))
                                  : kernel.accepts(instance);
      report_.note(fmt::format("{}: kernel {} refuses: {}", where, kernel.name, why));
    }
    return false;
  }

  void compare_node(ir::Graph& graph, int32_t n, const train_step::StepGraphs& graphs,
                    const Setting& setting, const std::string& where) {
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
    report_.answer(where, question, compare(question, pool_));
  }

  const ir::OpDef& op_;
  ThreadPool& pool_;
  Report& report_;
  std::set<std::string> seen_;
  size_t compared_ = 0;
  bool met_ = false;
};

}  // namespace

size_t check_kernels(const TrainerConfig& config, ThreadPool& pool, Report& report) {
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
    KernelCheck kernel(*op, pool, report);
    for (const Setting& setting : settings_of(config)) {
      try {
        train_step::StepGraphs graphs = graphs_of(config, setting);
        for (ir::Graph* graph : {&graphs.microbatch, &graphs.update})
          kernel.check(*graph, graphs, setting);
      } catch (const Error& error) {
        // Limits of modules are fine where the run keeps them.
        const std::string text = fmt::format("{}: {}", setting.text(), error.what());
        setting.of_run ? report.fault(text) : report.note(text);
      }
      kernel.next_setting();
    }
    if (!kernel.met())
      report.note("no node of the run has this op: its samples alone were checked");
    else if (kernel.compared() == 0)
      report.note("refused by every node: the run does not use it");
    report.end_subject();
  }
  return ops.size();
}

}  // namespace rhea::check
