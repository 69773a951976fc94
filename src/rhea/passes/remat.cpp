// Policy -> set of nodes -> schedule -> graph.
#include "rhea/passes/remat.h"

#include <algorithm>
#include <array>

#include "rhea/base/error.h"
#include "rhea/ops/barrier/optimization_barrier.h"
#include "rhea/ops/grouped/grouped.h"
#include "rhea/ops/ops.h"
#include "rhea/passes/direction.h"
#include "rhea/passes/graph_copy.h"
#include "rhea/passes/remat_budget.h"
#include "rhea/passes/remat_cost.h"
#include "rhea/passes/remat_schedule.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;
using ir::ValueId;

// Computed again in every mode: elementwise functions of values that backward reads anyway. One
// pass over memory right before the product that needs the result, instead of a result per block
// that waits for it.
std::vector<bool> cheap(const Graph& graph, const Regions& regions) {
  std::vector<bool> recompute(graph.nodes().size(), false);
  for (size_t i = 0; i < recompute.size(); ++i)
    recompute[i] = regions.recomputable[i] && graph.nodes()[i].op == &ops::kSwiglu;
  return recompute;
}

// Ops whose results `selective` keeps, besides products.
const std::array kKept = {&ops::kAttention, &ops::kReduceMax};

std::vector<bool> select(const Graph& graph, const Regions& regions, const RematPolicy& policy) {
  std::vector<bool> recompute = regions.recomputable;
  std::vector<int64_t> products(static_cast<size_t>(regions.num_blocks), 0);
  std::vector<bool> matched(policy.force_recompute_products.size(), false);
  for (size_t i = 0; i < static_cast<size_t>(regions.backward_begin); ++i) {
    const Node& node = graph.nodes()[i];
    if (std::find(kKept.begin(), kKept.end(), node.op) != kKept.end()) recompute[i] = false;
    if (node.op != &ops::kDotGeneral && node.op != &ops::kGroupedProduct) continue;
    bool forced = false;
    for (size_t t = 0; t < matched.size(); ++t) {
      if (graph.scope_name(node).find(policy.force_recompute_products[t]) == std::string::npos)
        continue;
      matched[t] = forced = true;
    }
    if (regions.block[i] < 0 || forced) continue;
    const int64_t number = ++products[static_cast<size_t>(regions.block[i])];
    if (number % 2 == 1) recompute[i] = false;
  }
  for (size_t t = 0; t < matched.size(); ++t) {
    if (!matched[t] && policy.texts_must_match)
      throw Error(
          "activation_checkpoint.force_recompute_mm_shapes_by_fqns: '{}' is in the FQN of no "
          "matrix "
          "product of the model. Use a part of an FQN such as 'layers.0.attention.wq' or "
          "'feed_forward.w1', or leave the text out",
          policy.force_recompute_products[t]);
  }
  return recompute;
}

class Rewriter {
 public:
  Rewriter(const Graph& from, const Regions& regions, const std::vector<bool>& recompute)
      : from_(from),
        regions_(regions),
        recompute_(recompute),
        behind_barrier_(from.nodes().size()) {}

  Graph run(const std::vector<ScheduledNode>& order) {
    for (const ScheduledNode step : order) {
      const auto index = static_cast<size_t>(step.node);
      const Node& node = from_.nodes()[index];
      const auto inputs = operands(node, step);
      if (step.again)
        second_.set(index, to_.add_like(to_, again(node), inputs));
      else
        first_.set(index, to_.add_like(from_, node, inputs));
    }
    first_.add_outputs();
    return std::move(to_);
  }

 private:
  // The node as one of the new graph, with the line of a second computation.
  Node again(Node node) {
    node.location = to_.intern_location(recomputed_line(from_.location_name(node)));
    node.scope = to_.intern_scope(from_.scope_name(node));
    return node;
  }

  std::vector<Value> operands(const Node& node, ScheduledNode step) {
    std::vector<Value> inputs;
    bool distinct = false;  // an operand differs from that of the first computation
    for (const ValueId id : node.inputs) {
      const bool second = reads_second(regions_, recompute_, step, id);
      distinct |= second;
      inputs.push_back((second ? second_ : first_)[id]);
    }
    if (!step.again) return inputs;
    const auto is_given = [&](ValueId id) {
      return from_.node(id).op == &ir::kInput || from_.node(id).op == &ir::kConstant;
    };
    for (const ValueId id : node.inputs) distinct |= !is_given(id);
    for (size_t k = 0; k < inputs.size(); ++k) {
      const ValueId id = node.inputs[k];
      if (reads_second(regions_, recompute_, step, id)) continue;
      // Weights and constants are read as they are where another operand tells the two apart.
      if (is_given(id) && distinct) continue;
      inputs[k] = barrier(node, id);
    }
    return inputs;
  }

  // One per value, made where it is first read.
  Value barrier(const Node& reader, ValueId id) {
    auto& made = behind_barrier_[static_cast<size_t>(id.node)];
    made.resize(from_.node(id).outputs.size());
    Value& value = made[static_cast<size_t>(id.output)];
    if (!value.valid())
      value = to_.add_as(from_, reader, ops::kOptimizationBarrier, std::vector{first_[id]}, {})[0];
    return value;
  }

  const Graph& from_;
  const Regions& regions_;
  const std::vector<bool>& recompute_;
  Graph to_;
  GraphCopy first_{from_, to_}, second_{from_, to_};  // the first and the second computation
  std::vector<std::vector<Value>> behind_barrier_;
};

// What the graph needs when `recompute` is done: as the executor plans it, or by its nodes.
GraphBytes bytes_of(const Graph& graph, const Regions& regions, const std::vector<bool>& recompute,
                    const RematPolicy& policy) {
  const auto order = schedule(graph, regions, recompute);
  if (policy.planned_bytes)
    return policy.planned_bytes(Rewriter(graph, regions, recompute).run(order));
  const auto lives = lifetimes(graph, regions, recompute, order);
  return {peak_bytes(lives, order.size()), plan_memory(lives).total};
}

BudgetTrades trades_of(const Graph& graph, const Regions& regions, const RematPolicy& policy) {
  return {graph, regions, cheap(graph, regions), [&](const std::vector<bool>& recompute) {
            if (policy.planned_bytes) return bytes_of(graph, regions, recompute, policy).live;
            const auto order = schedule(graph, regions, recompute);
            return peak_bytes(lifetimes(graph, regions, recompute, order), order.size());
          }};
}

std::vector<bool> decide(const Graph& graph, const Regions& regions, const RematPolicy& policy) {
  switch (policy.mode) {
    case RematPolicy::Mode::none:
      return cheap(graph, regions);
    case RematPolicy::Mode::full:
      return regions.recomputable;
    case RematPolicy::Mode::selective:
      return select(graph, regions, policy);
    case RematPolicy::Mode::memory_budget:
      return trades_of(graph, regions, policy).within(policy.memory_budget);
  }
  RHEA_CHECK(false, "remat: mode {}", static_cast<int>(policy.mode));
}

double again_flops(const Graph& graph, const std::vector<ScheduledNode>& order) {
  double flops = 0;
  for (const ScheduledNode step : order) {
    if (step.again) flops += node_cost(graph, graph.nodes()[static_cast<size_t>(step.node)]).flops;
  }
  return flops;
}

}  // namespace

RematResult remat(const Graph& graph, std::string_view loss, const RematPolicy& policy) {
  const Regions regions(graph, loss);
  const auto recompute = decide(graph, regions, policy);
  const auto order = schedule(graph, regions, recompute);
  RematResult result;
  result.num_recomputed = std::count_if(order.begin(), order.end(),
                                        [](const ScheduledNode& step) { return step.again; });
  result.recomputed_flops = again_flops(graph, order);
  result.peak_bytes = peak_bytes(lifetimes(graph, regions, recompute, order), order.size());
  result.graph = Rewriter(graph, regions, recompute).run(order);
  return result;
}

std::vector<BudgetPoint> budget_curve(const Graph& graph, std::string_view loss,
                                      const RematPolicy& policy) {
  const Regions regions(graph, loss);
  BudgetTrades trades = trades_of(graph, regions, policy);
  std::vector<BudgetPoint> curve;
  constexpr int kSteps = 20;
  for (int i = 0; i <= kSteps; ++i) {
    BudgetPoint point;
    point.budget = static_cast<double>(i) / kSteps;
    const auto recompute = trades.within(point.budget);
    point.recomputed_flops = again_flops(graph, schedule(graph, regions, recompute));
    point.bytes = bytes_of(graph, regions, recompute, policy);
    curve.push_back(point);
  }
  return curve;
}

}  // namespace rhea::passes
