// Directions of the nodes of a small training graph, before and after other passes.
#include "rhea/passes/direction.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "rhea/ops/cluster/cluster.h"
#include "rhea/ops/ops.h"
#include "rhea/passes/autodiff.h"
#include "rhea/passes/fuse.h"
#include "rhea/passes/remat.h"
#include "rhea/passes/simplify.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Value;

// Two blocks x + w2 tanh(w1 rms_norm(x)) on an embedded row, and the head with its loss.
Graph training_graph(bool gradients_too = true) {
  Graph graph;
  std::vector<Value> weights;
  const auto weight = [&](ir::Shape shape) {
    weights.push_back(graph.input(fmt::format("w{}", weights.size()), {DType::f32, shape}));
    return weights.back();
  };
  const Value ids = graph.input("ids", {DType::i32, {8}});
  Value x;
  {
    const ir::Scope scope(graph, "embed");
    x = ops::embedding(weight({16, 4}), ids);
  }
  for (int block = 0; block < 2; ++block) {
    const ir::Scope layers(graph, fmt::format("layers.{}", block));
    Value normed, hidden, result;
    {
      const ir::Scope scope(graph, "norm");
      normed = ops::rms_norm(x, weight({4}), 1e-5);
    }
    {
      const ir::Scope scope(graph, "w1");
      hidden = ops::linear(normed, weight({12, 4}));
    }
    const Value activated = ops::tanh(hidden);
    {
      const ir::Scope scope(graph, "w2");
      result = ops::linear(activated, weight({4, 12}));
    }
    x = x + result;
  }
  const Value scale = graph.input("scale", {DType::f32, {}});
  Value loss;
  {
    const ir::Scope scope(graph, "head");
    loss = ops::linear_cross_entropy(x, weight({16, 4}), ids, scale, 1);
  }
  if (gradients_too) {
    const auto grads = gradients(graph, loss, weights);
    for (size_t i = 0; i < grads.size(); ++i) graph.output(fmt::format("grad{}", i), grads[i]);
  }
  graph.output("loss", loss);
  return simplify(graph);
}

// The directions of each op of a module, as "dot_general forward".
std::map<std::string, std::multiset<std::string>> by_module(const Graph& graph) {
  std::map<std::string, std::multiset<std::string>> found;
  const auto all = directions(graph);
  for (size_t i = 0; i < all.size(); ++i) {
    const ir::Node& node = graph.nodes()[i];
    if (!node.inputs.empty())
      found[graph.scope_name(node)].insert(fmt::format("{} {}", node.op->name, name_of(all[i])));
  }
  return found;
}

TEST(Direction, ProductsOfAModuleAreToldApart) {
  const auto found = by_module(training_graph());
  for (const int block : {0, 1}) {
    for (const char* name : {"w1", "w2"}) {
      const auto module = fmt::format("layers.{}.{}", block, name);
      std::multiset<std::string> products;
      for (const auto& text : found.at(module))
        if (text.starts_with("dot_general")) products.insert(text);
      EXPECT_THAT(products,
                  testing::ElementsAre("dot_general forward", "dot_general input gradient",
                                       "dot_general weight gradient"))
          << module;
    }
    EXPECT_THAT(
        found.at(fmt::format("layers.{}.norm", block)),
        testing::IsSupersetOf({"rms_norm forward", "rms_norm_grad input and weight gradient"}));
  }
  EXPECT_THAT(found.at("embed"),
              testing::IsSupersetOf({"embedding forward", "embedding_grad weight gradient"}));
  EXPECT_THAT(found.at("head"), testing::Contains("linear_cross_entropy_grad loss and gradients"));
}

TEST(Direction, ASecondComputationIsNotTheFirst) {
  const Graph graph = remat(training_graph(), "loss", {.mode = RematPolicy::Mode::full}).graph;
  const auto found = by_module(graph);
  EXPECT_THAT(found.at("layers.1.w1"),
              testing::IsSupersetOf(
                  {"dot_general forward", "dot_general recompute", "dot_general input gradient"}));
}

TEST(Direction, ClustersHaveOneToo) {
  std::set<std::string> names;
  const Graph graph = fuse(training_graph());
  const auto all = directions(graph);
  for (size_t i = 0; i < all.size(); ++i)
    if (graph.nodes()[i].op == &ops::kCluster) names.emplace(name_of(all[i]));
  EXPECT_THAT(names, testing::IsSupersetOf({"forward", "input gradient"}));
}

TEST(Direction, WithoutGradientsAllIsForward) {
  EXPECT_THAT(directions(training_graph(false)), testing::Each(Direction::forward));
}

// What is added to gradients later, as several microbatches do.
TEST(Direction, WhatReadsAGradientIsOne) {
  Graph graph;
  const Value a = graph.input("a", {DType::f32, {3}});
  graph.set_context(graph.intern_scope("m"), graph.intern_location(gradient_line("m.cpp:1")));
  const Value grad = ops::tanh(a);
  graph.set_context(0, graph.intern_location("step.cpp:1"));
  graph.output("sum", ops::add(graph.input("before", {DType::f32, {3}}), grad));
  const auto found = by_module(graph);
  EXPECT_THAT(found.at("m"), testing::ElementsAre("tanh weight gradient"));
  EXPECT_THAT(found.at(""), testing::ElementsAre("add weight gradient"));
}

TEST(Direction, ALineIsMarkedOnce) {
  EXPECT_EQ(gradient_line(gradient_line("a.cpp:1")), "a.cpp:1 (gradient)");
  EXPECT_EQ(recomputed_line("a.cpp:1"), "a.cpp:1 (recomputed)");
}

}  // namespace
}  // namespace rhea::passes
