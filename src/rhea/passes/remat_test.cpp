// Recomputation: same values, less memory, the policies of each mode.
#include "rhea/passes/remat.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "rhea/base/error.h"
#include "rhea/passes/autodiff.h"
#include "rhea/passes/remat_cut.h"
#include "rhea/passes/simplify.h"
#include "rhea/passes/test_graphs.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Value;
using ir::ValueId;
using Mode = RematPolicy::Mode;
using test::count;

// `num_blocks` residual blocks x + w2 tanh(w1 rms_norm(x)) and the gradients of the mean square of
// the result.
Graph training_graph(int64_t num_blocks, int64_t tokens = 8, int64_t dim = 4, int64_t hidden = 12) {
  Graph graph;
  std::vector<Value> weights;
  const auto weight = [&](ir::Shape shape) {
    weights.push_back(graph.input(fmt::format("w{}", weights.size()), {DType::f32, shape}));
    return weights.back();
  };
  Value x = graph.input("x", {DType::f32, {tokens, dim}});
  for (int64_t i = 0; i < num_blocks; ++i) {
    const ir::Scope layers(graph, "layers");
    const ir::Scope block(graph, fmt::format("{}", i));
    const Value normed = ops::rms_norm(x, weight({dim}), 1e-5);
    Value hidden_values, result;
    {
      const ir::Scope scope(graph, "w1");
      hidden_values = ops::linear(normed, weight({hidden, dim}));
    }
    const Value activated = ops::tanh(hidden_values);
    {
      const ir::Scope scope(graph, "w2");
      result = ops::linear(activated, weight({dim, hidden}));
    }
    x = x + result;
  }
  const Value loss = ops::reduce_sum(x * x, {0, 1});
  const auto grads = gradients(graph, loss, weights);
  graph.output("loss", loss);
  for (size_t i = 0; i < grads.size(); ++i) graph.output(fmt::format("grad{}", i), grads[i]);
  return simplify(graph);
}

RematPolicy policy(Mode mode, double budget = 0) { return {.mode = mode, .memory_budget = budget}; }

const RematPolicy kPolicies[] = {policy(Mode::none),
                                 policy(Mode::full),
                                 policy(Mode::selective),
                                 policy(Mode::memory_budget, 0),
                                 policy(Mode::memory_budget, 0.3),
                                 policy(Mode::memory_budget, 0.7),
                                 policy(Mode::memory_budget, 1)};

TEST(Remat, NoPolicyChangesAValue) {
  const Graph graph = training_graph(3);
  const auto inputs = test::some_inputs(graph);
  const auto expected = ops::evaluate(graph, inputs);
  for (const RematPolicy& p : kPolicies) {
    const auto result = remat(graph, "loss", p);
    EXPECT_EQ(ops::evaluate(result.graph, inputs), expected)
        << static_cast<int>(p.mode) << " " << p.memory_budget;
  }
}

TEST(Remat, LaterPassesDoNotJoinTheTwoComputations) {
  const Graph graph = training_graph(3);
  for (const RematPolicy& p : kPolicies) {
    const Graph again = remat(graph, "loss", p).graph;
    EXPECT_EQ(simplify(again).nodes().size(), again.nodes().size())
        << static_cast<int>(p.mode) << " " << p.memory_budget;
  }
}

TEST(Remat, NoneLeavesTheGraphAlone) {
  const Graph graph = training_graph(3);
  const auto result = remat(graph, "loss", policy(Mode::none));
  EXPECT_EQ(result.graph.nodes().size(), graph.nodes().size());
  EXPECT_EQ(result.num_recomputed, 0);
  EXPECT_EQ(result.recomputed_flops, 0);
}

TEST(Remat, FullKeepsTheInputsOfBlocksOnly) {
  const auto result = remat(training_graph(3), "loss", policy(Mode::full));
  const Graph& graph = result.graph;
  const int32_t loss = graph.find_output("loss")->value.node;
  std::set<ValueId> kept;
  for (int32_t i = loss + 1; i < static_cast<int32_t>(graph.nodes().size()); ++i) {
    const ir::Node& node = graph.nodes()[static_cast<size_t>(i)];
    if (graph.scope_name(node).empty()) continue;
    for (const ValueId id : node.inputs) {
      const ir::Node& operand = graph.node(id);
      if (id.node > loss || operand.op == &ir::kInput || operand.op == &ir::kConstant) continue;
      kept.insert(id);
    }
  }
  // Block 0 reads the graph's input; blocks 1 and 2 read the sums of the ones before.
  EXPECT_EQ(kept.size(), 2u);
  for (const ValueId id : kept) EXPECT_EQ(graph.node(id).op, &ops::kAdd);
  // Norm, w1 and tanh of each block run again; w2 does not, since nothing reads its result.
  EXPECT_EQ(result.num_recomputed, 9);
  EXPECT_EQ(count(graph, ops::kTanh), 6);
}

TEST(Remat, SelectiveRepeatsEverySecondProduct) {
  // Products of a block: a = x wa, b = a wb, c = b wc, all read by backward.
  Graph graph;
  std::vector<Value> weights;
  Value x = graph.input("x", {DType::f32, {6, 4}});
  {
    const ir::Scope layers(graph, "model.layers.7");
    for (const char* name : {"wa", "wb", "wc"}) {
      const ir::Scope scope(graph, name);
      weights.push_back(graph.input(name, {DType::f32, {4, 4}}));
      x = ops::tanh(ops::linear(x, weights.back()));
    }
  }
  const Value loss = ops::reduce_sum(x * x, {0, 1});
  const auto grads = gradients(graph, loss, weights);
  graph.output("loss", loss);
  for (size_t i = 0; i < grads.size(); ++i) graph.output(fmt::format("grad{}", i), grads[i]);
  const Graph traced = simplify(graph);

  const auto products = [&](const RematPolicy& p) {
    std::map<std::string, int64_t> number;
    const auto& again = remat(traced, "loss", p).graph;
    for (const ir::Node& node : again.nodes()) {
      const bool forward = node.op == &ops::kDotGeneral && node.attrs.i64("rhs_contract") == 1;
      if (forward) ++number[again.scope_name(node)];
    }
    return number;
  };
  using Counts = std::map<std::string, int64_t>;
  const std::string a = "model.layers.7.wa", b = "model.layers.7.wb", c = "model.layers.7.wc";
  EXPECT_EQ(products(policy(Mode::none)), (Counts{{a, 1}, {b, 1}, {c, 1}}));
  EXPECT_EQ(products(policy(Mode::selective)), (Counts{{a, 1}, {b, 2}, {c, 1}}));
  // A product that is named runs again and is not counted: b is now the first, c the second.
  auto named = policy(Mode::selective);
  named.force_recompute_products = {"layers.7.wa"};
  EXPECT_EQ(products(named), (Counts{{a, 2}, {b, 1}, {c, 1}}));
}

TEST(Remat, ATextThatMatchesNoProduct) {
  const Graph graph = training_graph(1);
  auto p = policy(Mode::selective);
  p.force_recompute_products = {"moe.router.gate"};
  EXPECT_THROW(remat(graph, "loss", p), Error);
  p.texts_must_match = false;
  EXPECT_NO_THROW(remat(graph, "loss", p));
}

TEST(Remat, PeaksAreOrdered) {
  const Graph graph = training_graph(6, 64, 16, 48);
  const auto peak = [&](const RematPolicy& p) { return remat(graph, "loss", p).peak_bytes; };
  const int64_t none = peak(policy(Mode::none)), full = peak(policy(Mode::full));
  const int64_t selective = peak(policy(Mode::selective));
  EXPECT_LT(full, selective);
  EXPECT_LT(selective, none);
}

TEST(Remat, ABudgetIsKeptAtTheLeastWork) {
  const Graph graph = training_graph(6, 64, 16, 48);
  const int64_t none = remat(graph, "loss", policy(Mode::none)).peak_bytes;
  const int64_t full = remat(graph, "loss", policy(Mode::full)).peak_bytes;
  const auto curve = budget_curve(graph, "loss");
  ASSERT_EQ(curve.size(), 21u);
  EXPECT_LE(curve.front().bytes.live, full);
  EXPECT_EQ(curve.back().bytes.live, none);
  EXPECT_EQ(curve.back().recomputed_flops, 0);
  for (size_t i = 0; i < curve.size(); ++i) {
    const double target =
        static_cast<double>(full) + curve[i].budget * static_cast<double>(none - full);
    EXPECT_LE(static_cast<double>(curve[i].bytes.live), target + 0.5) << curve[i].budget;
    EXPECT_GE(curve[i].bytes.arena, curve[i].bytes.live);
    if (i > 0) {
      EXPECT_LE(curve[i].recomputed_flops, curve[i - 1].recomputed_flops);
    }
  }
  EXPECT_GT(curve[0].recomputed_flops, 2 * curve[10].recomputed_flops);
  // Casts, norms and the like go first: they are cheaper per byte than products.
  const auto most = remat(graph, "loss", policy(Mode::memory_budget, 0.8)).graph;
  EXPECT_EQ(count(most, ops::kDotGeneral), count(graph, ops::kDotGeneral));
}

// A method that grows with the square of the graph would not come back from this one.
TEST(Remat, TwentyThousandNodes) {
  const Graph graph = training_graph(1400);
  ASSERT_GT(graph.nodes().size(), 20000u);
  const int64_t none = remat(graph, "loss", policy(Mode::none)).peak_bytes;
  for (const RematPolicy& p : kPolicies)
    EXPECT_LE(remat(graph, "loss", p).peak_bytes, none)
        << static_cast<int>(p.mode) << " " << p.memory_budget;
}

// ---- minimum cuts against all subsets

BlockChoice measure(const BlockProblem& problem, uint32_t subset) {
  BlockChoice choice;
  std::vector<std::vector<bool>> needed;
  for (const auto& node : problem.nodes) {
    needed.emplace_back();
    for (const auto& result : node.results) needed.back().push_back(result.read_by_backward);
  }
  for (size_t n = problem.nodes.size(); n-- > 0;) {
    const auto& node = problem.nodes[n];
    bool wanted = false;
    for (const bool result : needed[n]) wanted |= result;
    if (!((subset >> n) & 1) && !(node.view && wanted)) continue;
    choice.cost += node.cost;
    for (const auto& [operand, result] : node.operands)
      needed[static_cast<size_t>(operand)][static_cast<size_t>(result)] = true;
    needed[n].assign(needed[n].size(), false);
  }
  for (size_t n = 0; n < problem.nodes.size(); ++n) {
    for (size_t r = 0; r < needed[n].size(); ++r) {
      if (needed[n][r]) choice.bytes += static_cast<double>(problem.nodes[n].results[r].bytes);
    }
  }
  return choice;
}

TEST(RematCut, NoSubsetIsBetterThanTheChoices) {
  std::mt19937 random(3);
  const auto pick = [&](uint32_t n) { return static_cast<int32_t>(random() % n); };
  for (int trial = 0; trial < 200; ++trial) {
    BlockProblem problem;
    for (int32_t n = 0; n < 9; ++n) {
      BlockProblem::Node node;
      node.view = n > 0 && pick(5) == 0;
      node.cost = node.view ? 0 : 1000.0 * (1 + pick(50));
      const int32_t results = !node.view && pick(4) == 0 ? 2 : 1;
      for (int32_t r = 0; r < results; ++r)
        node.results.push_back({100 * (1 + pick(20)), pick(2) == 0});
      for (int32_t k = 0; n > 0 && k < (node.view ? 1 : pick(3)); ++k) {
        const int32_t operand = pick(static_cast<uint32_t>(n));
        const auto width =
            static_cast<uint32_t>(problem.nodes[static_cast<size_t>(operand)].results.size());
        node.operands.emplace_back(operand, pick(width));
      }
      problem.nodes.push_back(node);
    }
    const auto choices = best_choices(problem);
    ASSERT_FALSE(choices.empty());
    EXPECT_EQ(choices[0].cost, 0);
    for (size_t c = 1; c < choices.size(); ++c) {
      EXPECT_LT(choices[c].bytes, choices[c - 1].bytes);
      EXPECT_GT(choices[c].cost, choices[c - 1].cost);
    }
    for (uint32_t subset = 0; subset < (1u << problem.nodes.size()); ++subset) {
      const BlockChoice other = measure(problem, subset);
      EXPECT_GE(other.bytes, choices.back().bytes - 1e-6);
      for (size_t c = 1; c < choices.size(); ++c) {
        const double price =
            (choices[c - 1].bytes - choices[c].bytes) / (choices[c].cost - choices[c - 1].cost);
        const double best = choices[c].bytes + price * choices[c].cost;
        // Capacities are whole bytes.
        EXPECT_GE(other.bytes + price * other.cost, best - 10) << "trial " << trial;
      }
    }
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace rhea::passes
