// The numbers come from the same graphs, kernel choices and memory planner that training uses.
#include "rhea/plan.h"

#include <fmt/core.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <map>
#include <vector>

#include "rhea/base/machine_memory.h"
#include "rhea/base/thread_pool.h"
#include "rhea/components/train_step/train_step.h"
#include "rhea/config/validate.h"
#include "rhea/models/model_size.h"
#include "rhea/models/registry.h"
#include "rhea/step_time.h"
#include "rhea/trainer_options.h"

namespace rhea {
namespace {

using exec::cpu::NodeReport;

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr size_t kLargest = 10;

double gib(int64_t bytes) { return static_cast<double>(bytes) / kGiB; }

void print_memory(const train_step::StepMemory& memory, std::ostream& out) {
  fmt::print(out, "\nMemory of this process, bytes\n");
  const auto line = [&](const char* name, int64_t bytes, const char* what) {
    fmt::print(out, "  {:<18}{:>18}  {:9.3f} GiB  {}\n", name, bytes, gib(bytes), what);
  };
  line("parameters", memory.parameters, "training.dtype");
  line("optimizer", memory.optimizer, "moments");
  line("gradients", memory.gradients, "");
  line("prepared weights", memory.prepared,
       "casts and packed copies, made once per optimizer step");
  line("activations", memory.activations,
       "values and workspaces of a graph: most that live at once");
  line("shared", -memory.shared(), "the arena of the three above is smaller than their sum");
  line("scratch", memory.scratch, "per-thread buffers and constants");
  line("total", memory.total(), "");
}

void print_fit(const TrainerConfig& config, const train_step::StepMemory& memory,
               std::ostream& out) {
  const MachineMemory left = machine_memory();
  const int64_t machine = left.available;
  const double share = static_cast<double>(memory.total()) / static_cast<double>(machine);
  if (share < 0.95)
    fmt::print(out, "\nFits: {:.2f} of {:.2f} GiB that are left ({:.1f} %).\n", gib(memory.total()),
               gib(machine), 100 * share);
  else
    fmt::print(
        out, "\nDoes not fit: {:.2f} GiB are needed, {:.2f} GiB are left ({}). What lowers it:\n{}",
        gib(memory.total()), gib(machine), left.bound, what_lowers_memory(config, memory, machine));
}

// Nodes of one kind: same op, types and kernel.
struct Kind {
  const NodeReport* first = nullptr;
  int64_t count = 0;
  double flops = 0;
};

void print_nodes(const train_step::StepPlan& plan, bool all, std::ostream& out) {
  for (const auto& [name, report] : plan.graphs) {
    fmt::print(out, "\nGraph {}: {} kernel calls\n", name, report.nodes.size());
    std::vector<std::string> order;
    std::map<std::string, Kind> kinds;
    for (size_t i = 0; i < report.nodes.size(); ++i) {
      const NodeReport& node = report.nodes[i];
      const std::string key =
          all ? fmt::format("{}", i)
              : fmt::format("{}|{}|{}|{}", node.op, node.types, node.kernel, node.note);
      Kind& kind = kinds[key];
      if (kind.first == nullptr) {
        kind.first = &node;
        order.push_back(key);
      }
      ++kind.count;
      kind.flops += node.cost.flops;
    }
    for (const auto& key : order) {
      const Kind& kind = kinds[key];
      fmt::print(out, "  {:>4}x {:<28} {}  kernel {}{}{}  [{}{}]\n", kind.count, kind.first->op,
                 kind.first->types, kind.first->kernel, kind.first->note.empty() ? "" : ": ",
                 kind.first->note, kind.first->fqn.empty() ? "-" : kind.first->fqn,
                 kind.count > 1 ? ", ..." : "");
    }
  }
}

// How often a step runs a graph.
double runs_per_step(std::string_view name, const train_step::StepGraphs& graphs,
                     int64_t accumulation) {
  if (name == "evaluate" || (name == "prepare" && graphs.update_prepares)) return 0;
  return name == "accumulate" ? static_cast<double>(accumulation - 1) : 1;
}

void print_time(const TrainerConfig& config, const train_step::StepGraphs& graphs,
                const train_step::StepPlan& plan, int64_t tokens, ThreadPool& pool,
                std::ostream& out) {
  const DType compute = step_options(config).trace.compute_dtype;
  exec::cpu::Limits limits = machine_limits(config, pool);
  double& peak = compute == DType::bf16 ? limits.flops_bf16 : limits.flops_f32;
  peak = config.metrics->peak_flops.value_or(peak);
  const int64_t accumulation = config::accumulation_steps(config, 1);
  std::vector<exec::cpu::NodeTime> times;
  double flops = 0, seconds = 0;
  for (const auto& [name, report] : plan.graphs) {
    const double runs = runs_per_step(name, graphs, accumulation);
    if (runs == 0) continue;
    for (const auto& node : report.nodes) {
      times.push_back({&node, runs * predicted_seconds(node, limits), runs});
      flops += runs * node.cost.flops;
      seconds += times.back().seconds;
    }
  }
  fmt::print(out,
             "\nTime of a step at the limit: {:.3f} s ({:.4g} flop at {:.4g} flop/s {}, {} "
             "threads; causal half only)\n",
             flops / peak, flops, peak, dtype_name(compute), pool.num_threads());
  fmt::print(out, "Predicted time of a step: {:.3f} s, {:.0f} tokens/s, {:.1f} % of the limit\n",
             seconds, static_cast<double>(tokens) / seconds, 100 * flops / peak / seconds);
  fmt::print(out, "By op and kernel, predicted: {}",
             exec::cpu::to_table(exec::cpu::sum_times(times, exec::cpu::op_and_kernel, limits)));
}

void print_largest(const train_step::StepPlan& plan, std::ostream& out) {
  std::vector<const NodeReport*> nodes;
  for (const auto& [name, report] : plan.graphs) {
    if (name != "microbatch") continue;
    for (const NodeReport& node : report.nodes) nodes.push_back(&node);
  }
  const size_t count = std::min(kLargest, nodes.size());
  std::partial_sort(
      nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(count), nodes.end(),
      [](const NodeReport* a, const NodeReport* b) { return a->output_bytes > b->output_bytes; });
  fmt::print(out, "\nLargest activations of the microbatch\n");
  for (size_t i = 0; i < count; ++i)
    fmt::print(out, "  {:>14} bytes  {:<24} {}\n", nodes[i]->output_bytes, nodes[i]->op,
               nodes[i]->fqn);
}

// "layers.*.attention" of "layers.3.attention".
std::string of_all_blocks(std::string_view fqn) {
  std::string result;
  for (size_t i = 0; i < fqn.size(); ++i) {
    const bool number = i > 0 && fqn[i - 1] == '.' && fqn[i] >= '0' && fqn[i] <= '9';
    if (!number) {
      result += fqn[i];
      continue;
    }
    result += '*';
    while (i + 1 < fqn.size() && fqn[i + 1] >= '0' && fqn[i + 1] <= '9') ++i;
  }
  return result;
}

void print_peak(const train_step::StepPlan& plan, std::ostream& out) {
  struct Sum {
    int64_t count = 0, bytes = 0;
  };
  std::map<std::string, Sum> sums;
  for (const auto& buffer : plan.peak.buffers) {
    using BufferKind = exec::cpu::ArenaPeak::Kind;
    const std::string what = buffer.kind == BufferKind::tensor ? of_all_blocks(buffer.fqn)
                             : buffer.kind == BufferKind::workspace
                                 ? "workspace of " + buffer.op
                                 : fmt::format("{} {}", buffer.op, of_all_blocks(buffer.fqn));
    Sum& sum = sums[what];
    ++sum.count;
    sum.bytes += buffer.bytes;
  }
  std::vector<std::pair<std::string, Sum>> rows(sums.begin(), sums.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  fmt::print(out, "\nThe arena is fullest in graph {} at {} {}\n",
             plan.graphs[plan.peak.graph].first, plan.peak.op, plan.peak.fqn);
  for (const auto& [what, sum] : rows)
    fmt::print(out, "  {:>14} bytes  {:>4}x {}\n", sum.bytes, sum.count, what);
}

}  // namespace

std::string what_lowers_memory(const TrainerConfig& config, const train_step::StepMemory& memory,
                               int64_t limit) {
  std::string text;
  const int64_t states = memory.parameters + memory.gradients + memory.optimizer;
  // A smaller batch cannot help where what does not depend on it is too much.
  if (memory.activations * 4 > memory.total() && states < limit) {
    if (config.activation_checkpoint.mode != "full")
      text += "  --activation_checkpoint.mode full (activations)\n";
    if (config.training.local_batch_size > 1)
      text += fmt::format(
          "  --training.local_batch_size {} (activations; keep the global batch with "
          "--training.global_batch_size {})\n",
          config.training.local_batch_size / 2, config::resolved_global_batch_size(config, 1));
    text += fmt::format("  --training.seq_len {} (activations)\n", config.training.seq_len / 2);
  }
  if (config.training.dtype == "float32")
    text += fmt::format(
        "  --optimizer.implementation fused_opt_states_bf16 (moments in bfloat16: -{:.2f} GiB)\n"
        "  --training.dtype bfloat16 (parameters, gradients, moments: -{:.2f} GiB)\n",
        gib(memory.optimizer) / 2, gib(states) / 2);
  if (states > limit)
    text += fmt::format("  a smaller flavor: the state alone is {:.2f} GiB\n", gib(states));
  return text;
}

void print_plan(const TrainerConfig& config, const PlanOptions& options, std::ostream& out) {
  const auto& model = models::decoder(config.model_spec);
  const auto step = step_options(config);
  const auto graphs = train_step::build_step_graphs(model, step);
  const auto size = models::model_size(model, graphs.all_parameters(), config.training.seq_len);
  ThreadPool pool(options.num_threads);
  const auto plan = train_step::plan_step(graphs, pool.num_threads(), compile_options(config));

  const int64_t accumulation = config::accumulation_steps(config, 1);
  const int64_t tokens = accumulation * step.trace.num_tokens;
  fmt::print(out, "{} {}\n", config.model_spec.name, config.model_spec.flavor);
  fmt::print(out, "  parameters           {}\n", size.num_parameters);
  if (!graphs.frozen.empty())
    fmt::print(out, "  trainable            {} ({:.3f} %)\n", size.num_trainable,
               size.trainable_percent());
  if (size.num_active != size.num_parameters)
    fmt::print(out, "  parameters of a token {}\n", size.num_active);
  fmt::print(
      out,
      "  flops per token      {} (forward and backward, no causal discount, no recomputation)\n",
      size.flops_per_token);
  fmt::print(out, "  tokens per step      {} ({} x {} x {} accumulation steps)\n", tokens,
             config.training.local_batch_size, config.training.seq_len, accumulation);
  fmt::print(out, "  activation checkpoint {}\n", config.activation_checkpoint.mode);
  print_memory(plan.memory, out);

  print_time(config, graphs, plan, tokens, pool, out);
  print_largest(plan, out);
  print_peak(plan, out);
  print_nodes(plan, options.all_nodes, out);
  print_fit(config, plan.memory, out);
}

}  // namespace rhea
