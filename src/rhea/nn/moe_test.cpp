// Routers on numbers that can be checked by hand, and an expert that nobody chooses.
#include "rhea/nn/moe.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rhea/ops/evaluate.h"
#include "rhea/ops/grouped/grouped.h"

namespace rhea::nn {
namespace {

struct Routed {
  std::vector<double> weights, experts;
};

// One token whose logits are `logits`: the router's weight is the unit matrix.
Routed route(Router::Config router, const std::vector<double>& logits,
             const std::vector<double>& correction = {}) {
  const auto n = static_cast<int64_t>(logits.size());
  router.num_experts = router.gate->in_features = router.gate->out_features = n;
  router.correction_bias = !correction.empty();
  ir::Graph graph;
  Trace trace(graph, {.num_tokens = 1, .seq_len = 1});
  const auto result = router.forward(trace, graph.input("x", {DType::f32, {1, n}}));
  graph.output("weights", result.weights_Tk);
  graph.output("experts", result.experts_Tk);
  std::vector<double> unit(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; ++i) unit[static_cast<size_t>(i * n + i)] = 1;
  std::map<std::string, ops::Tensor> inputs = {{"x", logits}, {"gate.weight", unit}};
  if (router.correction_bias) inputs["gate.e_score_correction_bias"] = correction;
  inputs[std::string(kTokens)] = inputs[std::string(kPositions)] = {0};
  const auto outputs = ops::evaluate(graph, inputs);
  return {outputs.at("weights"), outputs.at("experts")};
}

Router::Config top_2() {
  Router::Config router;
  router.top_k = 2;
  return router;
}

double logit(double p) { return std::log(p / (1 - p)); }

void expect_weights(const Routed& routed, const std::vector<double>& experts,
                    const std::vector<double>& weights) {
  EXPECT_EQ(routed.experts, experts);
  ASSERT_EQ(routed.weights.size(), weights.size());
  for (size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(routed.weights[i], weights[i], 1e-9);
}

const std::vector<double> kLogits = {0, std::log(2.0), std::log(3.0), std::log(4.0)};

TEST(Router, W9SoftmaxThenPickIsNotPickThenSoftmax) {
  Router::Config router = top_2();
  expect_weights(route(router, kLogits), {3, 2}, {0.4, 0.3});
  router.normalize = true;
  expect_weights(route(router, kLogits), {3, 2}, {4.0 / 7, 3.0 / 7});
  router.normalize = false;
  router.score = "softmax_of_chosen";
  expect_weights(route(router, kLogits), {3, 2}, {4.0 / 7, 3.0 / 7});
}

TEST(Router, W8SigmoidNormalisesBeforeTheScale) {
  Router::Config router = top_2();
  router.score = "sigmoid";
  router.normalize = true;
  expect_weights(route(router, {logit(0.9), logit(0.8), logit(0.1)}), {0, 1},
                 {0.9 / 1.7, 0.8 / 1.7});
  router.scale = 2.5;
  expect_weights(route(router, {logit(0.9), logit(0.8), logit(0.1)}), {0, 1},
                 {2.5 * 0.9 / 1.7, 2.5 * 0.8 / 1.7});
}

TEST(Router, CorrectionBiasOnlyChooses) {
  Router::Config router = top_2();
  router.score = "sigmoid";
  router.normalize = true;
  router.scale = 2.5;
  expect_weights(route(router, {logit(0.9), logit(0.8), logit(0.1)}, {0, -0.5, 0.9}), {2, 0},
                 {0.25, 2.25});
}

TEST(Router, TiesGoToTheLowerExpert) {
  expect_weights(route(top_2(), {1, 1, 1, 1}), {0, 1}, {0.25, 0.25});
}

// Slot k of token t: expert (t K + k) mod E; weights are the router's for these experts.
TEST(Router, LoadCanBeForcedToBeEqual) {
  ir::Graph graph;
  Trace trace(graph, {.num_tokens = 3, .seq_len = 3, .force_load_balance = true});
  Router::Config router = top_2();
  router.num_experts = router.gate->in_features = router.gate->out_features = 4;
  const auto result = router.forward(trace, graph.input("x", {DType::f32, {3, 4}}));
  graph.output("weights", result.weights_Tk);
  graph.output("experts", result.experts_Tk);
  const std::vector<double> unit = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
  std::vector<double> x;
  for (int t = 0; t < 3; ++t) x.insert(x.end(), kLogits.begin(), kLogits.end());
  const auto outputs = ops::evaluate(graph, {{"x", x},
                                             {"gate.weight", unit},
                                             {std::string(kTokens), ops::Tensor{0, 0, 0}},
                                             {std::string(kPositions), ops::Tensor{0, 1, 2}}});
  EXPECT_EQ(outputs.at("experts"), (ops::Tensor{0, 1, 2, 3, 0, 1}));
  const auto& weights = outputs.at("weights");
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(weights[i], 0.1 * (1 + double(i % 4)), 1e-9) << i;
}

TEST(Router, GroupsAreJudgedByTheirBestOrTheirBestTwo) {
  Router::Config router = top_2();
  router.score = "sigmoid";
  router.num_groups = 2;
  router.top_groups = 1;
  // The best expert is in the first group, the better pair in the second.
  const std::vector<double> logits = {logit(0.9), logit(0.1), logit(0.6), logit(0.7)};
  router.group_score = "top2";
  expect_weights(route(router, logits), {3, 2}, {0.7, 0.6});
  router.group_score = "max";
  expect_weights(route(router, logits), {0, 1}, {0.9, 0.1});
}

TEST(Router, SumOfWeightsHasALowerBound) {
  Router::Config router = top_2();
  router.score = "sigmoid";
  router.normalize = true;
  router.normalize_min = 0.5;
  expect_weights(route(router, {logit(0.1), logit(0.2), logit(0.05)}), {1, 0}, {0.4, 0.2});
}

TEST(Router, SparsemixerDropsWhatIsFarBelowTheBest) {
  Router::Config router = top_2();
  router.score = "sparsemixer";
  router.jitter = 0.1;
  // 3.9 is within 20 % of 4, 2 is not; without 4, 3.9 stands alone.
  expect_weights(route(router, {2, 4, 3.9}), {1, 2}, {1 / (1 + std::exp(-0.1)), 1});
}

// Gradient of the experts' weights: exactly 0 where no token came, whatever lies in rows of
// nobody.
TEST(Experts, OneThatNobodyChoosesHasNoGradient) {
  ir::Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 2}});
  const Value w = graph.input("w", {DType::f32, {3, 2, 2}});
  const Value counts = graph.input("counts", {DType::i32, {3}});
  const Value y = ops::grouped_product(x, w, counts, 1);
  const Value ones = graph.constant(1, y.type());
  graph.output("dw", graph.add1(ops::kGroupedWeightGrad, {ones, x, counts}));
  graph.output("y", y);
  const double nan = std::nan("");
  const auto outputs = ops::evaluate(graph, {{"x", {1, 2, 3, 4, 5, 6, nan, nan}},
                                             {"w", {1, 0, 0, 1, 7, 7, 7, 7, 2, 0, 0, 2}},
                                             {"counts", {1, 0, 2}}});
  EXPECT_EQ(outputs.at("y"), (ops::Tensor{1, 2, 6, 8, 10, 12, 0, 0}));
  EXPECT_EQ(outputs.at("dw"), (ops::Tensor{1, 2, 1, 2, 0, 0, 0, 0, 8, 10, 8, 10}));
}

}  // namespace
}  // namespace rhea::nn
