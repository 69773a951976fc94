// Sums and tables.
#include "rhea/components/profiler/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "rhea/base/error.h"

namespace rhea::profiler {
namespace {

using exec::cpu::NodeReport;
using exec::cpu::NodeTime;
using exec::cpu::TimeRow;

constexpr const char* kRest = "rest";

std::vector<NodeTime> times_of_calls(const Recording& recording) {
  const double per_step = 1 / static_cast<double>(recording.steps.size());
  std::vector<NodeTime> times;
  for (const Graph& graph : recording.graphs) {
    std::vector<NodeTime> nodes;
    for (const auto& node : *graph.nodes) nodes.push_back({&node, 0, 0});
    for (const auto& call : graph.log.calls) {
      NodeTime& time = nodes[static_cast<size_t>(call.node)];
      time.seconds += per_step * seconds_between(call.begin, call.end);
      time.calls += per_step;
    }
    std::ranges::copy_if(nodes, std::back_inserter(times),
                         [](const NodeTime& time) { return time.calls > 0; });
  }
  return times;
}

const Graph& graph_of(const Recording& recording, const NodeReport& node) {
  for (const Graph& graph : recording.graphs)
    if (&node >= graph.nodes->data() && &node < graph.nodes->data() + graph.nodes->size())
      return graph;
  RHEA_CHECK(false, "a call of no recorded graph: {}", node.op);
}

// What belongs to no module is named after its graph: "(update)".
std::string with_part(const Graph& graph, const NodeReport& node, const std::string& module) {
  const std::string part = part_of(graph, node);
  if (!node.fqn.empty()) return fmt::format("{}, {}", module, part);
  return part == graph.name ? fmt::format("({})", part) : fmt::format("({}), {}", graph.name, part);
}

// "layers.3" of "layers.3.attention.wq"; the module of what lies in no layer.
std::string layer_of(const Graph& graph, const NodeReport& node) {
  if (node.fqn.empty()) return fmt::format("({})", graph.name);
  for (size_t begin = 0; begin < node.fqn.size();) {
    const size_t end = std::min(node.fqn.find('.', begin), node.fqn.size());
    const std::string_view word = std::string_view(node.fqn).substr(begin, end - begin);
    if (word.find_first_not_of("0123456789") == std::string_view::npos)
      return node.fqn.substr(0, end);
    begin = end + 1;
  }
  return node.fqn;
}

// Time of [begin, end) in kernels.
double kernel_seconds(const Recording& recording, Time begin, Time end) {
  double sum = 0;
  for (const Graph& graph : recording.graphs)
    for (const auto& call : graph.log.calls)
      if (call.begin >= begin && call.end <= end) sum += seconds_between(call.begin, call.end);
  return sum;
}

void add_phase(Report& report, const std::string& name, double seconds) {
  const auto found = std::ranges::find(report.phases, name, &std::pair<std::string, double>::first);
  if (found != report.phases.end())
    found->second += seconds;
  else
    report.phases.emplace_back(name, seconds);
}

nlohmann::ordered_json to_json(const std::vector<TimeRow>& rows) {
  auto list = nlohmann::ordered_json::array();
  for (const TimeRow& row : rows) {
    const double seconds = std::max(row.seconds, 1e-12);
    list.push_back({{"name", row.name},
                    {"calls", row.calls},
                    {"seconds", row.seconds},
                    {"flops", row.flops},
                    {"bytes", row.bytes},
                    {"gflops_per_s", row.flops / seconds * 1e-9},
                    {"gb_per_s", row.bytes / seconds * 1e-9},
                    {"share_of_limit", row.limit / seconds}});
  }
  return list;
}

}  // namespace

double Report::explained() const {
  double sum = kernels;
  for (const auto& [name, seconds] : phases)
    if (name == "fetching_batch" || name == "checkpoint_save") sum += seconds;
  return step > 0 ? sum / step : 0;
}

std::string part_of(const Graph& graph, const NodeReport& node) {
  const bool has_way_back = graph.name == "microbatch" || graph.name == "accumulate";
  return has_way_back ? std::string(passes::name_of(node.direction)) : graph.name;
}

Report make_report(const Recording& recording, const exec::cpu::Limits& limits) {
  Report report;
  report.limits = limits;
  report.first_step = recording.steps.front().number;
  report.last_step = recording.steps.back().number;
  const auto times = times_of_calls(recording);
  const auto sums = [&](const auto& name) {
    return exec::cpu::sum_times(
        times, [&](const NodeReport& node) { return name(graph_of(recording, node), node); },
        limits);
  };
  report.directions = sums(part_of);
  report.ops = sums([](const Graph& graph, const NodeReport& node) {
    return fmt::format("{}, {}", exec::cpu::op_and_kernel(node), part_of(graph, node));
  });
  report.modules = sums([](const Graph& graph, const NodeReport& node) {
    return with_part(graph, node, exec::cpu::module_of(node));
  });
  report.layers = sums(layer_of);
  report.fqns = sums(
      [](const Graph& graph, const NodeReport& node) { return with_part(graph, node, node.fqn); });
  for (const NodeTime& time : times) report.kernels += time.seconds;

  const double per_step = 1 / static_cast<double>(recording.steps.size());
  double in_phases = 0;
  for (const auto& step : recording.steps)
    report.step += per_step * seconds_between(step.begin, step.end);
  for (size_t i = 0; i < recording.phases.size(); ++i) {
    const Phase& phase = recording.phases[i];
    double own =
        seconds_between(phase.begin, phase.end) - kernel_seconds(recording, phase.begin, phase.end);
    // Phases end before the one around them: earlier ones may lie inside, later ones around.
    for (size_t j = 0; j < i; ++j) {
      const Phase& inner = recording.phases[j];
      if (inner.begin < phase.begin) continue;
      const bool direct =
          std::none_of(recording.phases.begin() + static_cast<std::ptrdiff_t>(j) + 1,
                       recording.phases.begin() + static_cast<std::ptrdiff_t>(i),
                       [&](const Phase& between) { return between.begin <= inner.begin; });
      if (direct)
        own -= seconds_between(inner.begin, inner.end) -
               kernel_seconds(recording, inner.begin, inner.end);
    }
    add_phase(report, phase.name, per_step * own);
    in_phases += per_step * own;
  }
  add_phase(report, kRest, report.step - report.kernels - in_phases);
  return report;
}

std::string to_text(const Report& report) {
  const std::string steps =
      report.first_step == report.last_step
          ? fmt::format("step {}", report.last_step)
          : fmt::format("steps {} to {}", report.first_step, report.last_step);
  std::string text = fmt::format(
      "Profile of {}: {:.3f} ms a step, {:.1f} % in kernels, {:.1f} % explained; limits {:.0f} "
      "GFLOP/s f32, {:.0f} GFLOP/s bf16, {:.1f} GB/s\n",
      steps, report.step * 1e3, 100 * report.kernels / report.step, 100 * report.explained(),
      report.limits.flops_f32 * 1e-9, report.limits.flops_bf16 * 1e-9, report.limits.bytes * 1e-9);
  for (const auto& [title, rows] : {std::pair("By direction", &report.directions),
                                    {"By op and kernel", &report.ops},
                                    {"By module", &report.modules},
                                    {"By layer", &report.layers}})
    text += fmt::format("{}: {}", title, exec::cpu::to_table(*rows, report.step));
  text += "Outside kernels\n";
  for (const auto& [name, seconds] : report.phases)
    text += fmt::format("  {:5.1f} % {:10.3f} ms  {}\n", 100 * seconds / report.step, seconds * 1e3,
                        name);
  return text;
}

std::string to_json(const Report& report) {
  nlohmann::ordered_json json = {{"first_step", report.first_step},
                                 {"last_step", report.last_step},
                                 {"step_seconds", report.step},
                                 {"kernel_seconds", report.kernels},
                                 {"explained", report.explained()},
                                 {"limits",
                                  {{"flops_f32", report.limits.flops_f32},
                                   {"flops_bf16", report.limits.flops_bf16},
                                   {"bytes", report.limits.bytes}}},
                                 {"directions", to_json(report.directions)},
                                 {"ops", to_json(report.ops)},
                                 {"modules", to_json(report.modules)},
                                 {"layers", to_json(report.layers)},
                                 {"fqns", to_json(report.fqns)}};
  for (const auto& [name, seconds] : report.phases) json["outside_kernels"][name] = seconds;
  return json.dump(1) + '\n';
}

}  // namespace rhea::profiler
