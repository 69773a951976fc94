// Rewrites that are exact in floating point, and those that are refused.
#include "rhea/passes/simplify.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <functional>

#include "rhea/ops/barrier/optimization_barrier.h"
#include "rhea/passes/autodiff.h"
#include "rhea/passes/test_graphs.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::OpDef;
using ir::Type;
using ir::Value;
using test::count;

const Type kMatrix{DType::f32, {3, 4}};

Graph graph_of(const std::function<Value(Value)>& build, Type type = kMatrix) {
  Graph graph;
  const Value x = graph.input("x", std::move(type));
  graph.output("y", build(x));
  return graph;
}

struct Rule {
  const char* name;
  std::function<Value(Value)> build;
};

TEST(Simplify, WhatIsTheOperandItselfGoesAway) {
  const auto splat = [](Value x, double number) { return x.graph->constant(number, x.type()); };
  const Rule rules[] = {
      {"x*1", [&](Value x) { return x * splat(x, 1); }},
      {"1*x", [&](Value x) { return splat(x, 1) * x; }},
      {"x/1", [&](Value x) { return x / splat(x, 1); }},
      {"x+-0", [&](Value x) { return x + splat(x, -0.0); }},
      {"-0+x", [&](Value x) { return splat(x, -0.0) + x; }},
      {"x-0", [&](Value x) { return x - splat(x, 0.0); }},
      {"--x", [](Value x) { return ops::negate(ops::negate(x)); }},
      {"convert",
       [](Value x) {
         return x.graph->add1(ops::kConvert, {x}, {{"dtype", DType::f32}});
       }},
      {"reshape",
       [](Value x) {
         return x.graph->add1(ops::kReshape, {x}, {{"shape", x.shape()}});
       }},
      {"reshape of a reshape",
       [](Value x) {
         return ops::reshape(ops::reshape(x, {12}), {3, 4});
       }},
      {"slice",
       [](Value x) {
         return ops::slice(x, {0, 0}, {3, 4});
       }},
      {"pad",
       [](Value x) {
         return ops::pad(x, {0, 0}, {0, 0});
       }},
      {"transpose",
       [](Value x) {
         return ops::transpose(x, {0, 1});
       }},
      {"broadcast",
       [](Value x) {
         return ops::broadcast_in_dim(x, {3, 4}, {0, 1});
       }},
      {"concatenate", [](Value x) { return ops::concatenate(std::vector{x}, 0); }},
  };
  for (const Rule& rule : rules) {
    SCOPED_TRACE(rule.name);
    const Graph graph = simplify(graph_of(rule.build));
    EXPECT_EQ(graph.nodes().size(), 1u);
    EXPECT_EQ(graph.find_output("y")->value, graph.find_input("x")->value);
  }
}

TEST(Simplify, WhatChangesABitStays) {
  const auto splat = [](Value x, double number) { return x.graph->constant(number, x.type()); };
  const Rule rules[] = {
      {"x+0 (of -0)", [&](Value x) { return x + splat(x, 0.0); }},
      {"x--0 (of -0)", [&](Value x) { return x - splat(x, -0.0); }},
      {"x*0 (of NaN)", [&](Value x) { return x * splat(x, 0.0); }},
      {"x-x (of Inf)", [](Value x) { return x - x; }},
      {"x/x", [](Value x) { return x / x; }},
      {"x*-1", [&](Value x) { return x * splat(x, -1); }},
      {"transpose",
       [](Value x) {
         return ops::transpose(x, {1, 0});
       }},
      {"slice",
       [](Value x) {
         return ops::slice(x, {0, 0}, {3, 3});
       }},
      {"barrier", [](Value x) { return ops::optimization_barrier(x); }},
      {"(x+y)+z", [](Value x) { return (x + ops::tanh(x)) + ops::sine(x); }},
  };
  for (const Rule& rule : rules) {
    SCOPED_TRACE(rule.name);
    const Graph before = graph_of(rule.build);
    EXPECT_EQ(simplify(before).nodes().size(), before.nodes().size());
  }
}

TEST(Simplify, ConvertsAreNeverDropped) {
  const auto there_and_back = [](DType dtype) {
    return [dtype](Value x) { return ops::convert(ops::convert(x, dtype), x.dtype()); };
  };
  const std::pair<DType, DType> pairs[] = {{DType::f32, DType::bf16}, {DType::bf16, DType::f32},
                                           {DType::f32, DType::f64},  {DType::f64, DType::f32},
                                           {DType::f32, DType::i32},  {DType::i32, DType::f32}};
  for (const auto& [from, to] : pairs) {
    const Graph graph = simplify(graph_of(there_and_back(to), {from, {3, 4}}));
    EXPECT_EQ(count(graph, ops::kConvert), 2) << dtype_name(from) << " " << dtype_name(to);
  }
}

TEST(Simplify, ArithmeticOfSplatsIsDoneInTheirType) {
  const auto constant = [](const std::function<Value(Graph&)>& build) {
    Graph graph;
    graph.output("y", build(graph));
    const Graph result = simplify(graph);
    EXPECT_EQ(result.nodes().size(), 1u);
    const ir::Node& node = result.node(result.find_output("y")->value);
    EXPECT_EQ(node.op, &ir::kConstant);
    return node.op == &ir::kConstant ? node.attrs.f64("value") : NAN;
  };
  const auto two = [](Graph& g, DType dtype, double a, double b) {
    return std::pair{g.constant(a, {dtype, {2}}), g.constant(b, {dtype, {2}})};
  };
  EXPECT_EQ(constant([&](Graph& g) {
              const auto [a, b] = two(g, DType::f32, 0.1f, 0.2f);
              return a + b;
            }),
            static_cast<double>(0.1f + 0.2f));
  EXPECT_EQ(constant([&](Graph& g) {
              const auto [a, b] = two(g, DType::f64, 1, 3);
              return a / b;
            }),
            1.0 / 3);
  EXPECT_EQ(constant([&](Graph& g) {
              const auto [a, b] = two(g, DType::bf16, 1, 0x1p-9);
              return a - b;
            }),
            1);  // a tie, rounded to even
  EXPECT_EQ(constant([&](Graph& g) {
              const auto [a, b] = two(g, DType::f32, 3, 5);
              return a * b;
            }),
            15);
  EXPECT_EQ(constant([](Graph& g) {
              const Value third = g.constant(static_cast<double>(1.0f / 3), {DType::f32, {}});
              return ops::broadcast_in_dim(ops::convert(third, DType::bf16), {4, 2}, {});
            }),
            0.333984375);
  EXPECT_EQ(constant([](Graph& g) {
              const Value x = g.constant(2, {DType::f32, {4, 2}});
              return ops::slice(ops::transpose(ops::reshape(x, {2, 4}), {1, 0}), {0, 0}, {1, 2});
            }),
            2);
}

TEST(Simplify, EqualNodesBecomeTheFirstOne) {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  Value first, second, other;
  {
    const ir::Scope scope(graph, "first");
    first = ops::transpose(ops::tanh(x), {1, 0});
  }
  {
    const ir::Scope scope(graph, "second");
    second = ops::transpose(ops::tanh(x), {1, 0});
    other = ops::transpose(ops::tanh(x), {0, 1});
  }
  graph.output("a", first);
  graph.output("b", second);
  graph.output("c", other);
  const Graph result = simplify(graph);
  EXPECT_EQ(result.nodes().size(), 3u);
  EXPECT_EQ(result.find_output("a")->value, result.find_output("b")->value);
  EXPECT_NE(result.find_output("a")->value, result.find_output("c")->value);
  EXPECT_EQ(result.scope_name(result.node(result.find_output("b")->value)), "first");
}

TEST(Simplify, OtherAttributesOrOperandsAreOtherNodes) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 4}}),
              y = graph.input("y", {DType::f32, {4, 4}});
  graph.output("nn", ops::dot_general(x, y, 1, 0, DType::f32));
  graph.output("nt", ops::dot_general(x, y, 1, 1, DType::f32));
  graph.output("yx", ops::dot_general(y, x, 1, 0, DType::f32));
  graph.output("half", ops::dot_general(x, y, 1, 0, DType::bf16));
  EXPECT_EQ(simplify(graph).nodes().size(), graph.nodes().size());
}

TEST(Simplify, ABarrierKeepsTwoComputationsApart) {
  const Graph graph =
      graph_of([](Value x) { return ops::tanh(x) * ops::tanh(ops::optimization_barrier(x)); });
  EXPECT_EQ(count(simplify(graph), ops::kTanh), 2);
}

TEST(Simplify, DeadNodesGoInputsStay) {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  graph.input("unused", kMatrix);
  ops::tanh(ops::sine(x));
  graph.output("y", ops::exponential(x));
  const Graph result = simplify(graph);
  EXPECT_EQ(result.nodes().size(), 3u);
  EXPECT_NE(result.find_input("unused"), nullptr);
}

TEST(Simplify, OutputsKeepNamesAndDonations) {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  graph.output("y", ops::multiply(x, 1) + ops::tanh(x), "x");
  const Graph result = simplify(graph);
  ASSERT_NE(result.find_output("y"), nullptr);
  EXPECT_EQ(result.find_output("y")->donates, "x");
}

TEST(Simplify, TheLossIsFormedOnceInATrainingGraph) {
  for (const bool has_bias : {false, true}) {
    Graph graph;
    const Value h = graph.input("h", {DType::f32, {4, 8}}),
                w = graph.input("w", {DType::f32, {6, 8}});
    const Value labels = graph.input("labels", {DType::i32, {4}});
    const Value scale = graph.input("scale", {DType::f32, {}});
    std::vector<Value> trained = {h, w};
    std::optional<Value> bias;
    if (has_bias) trained.push_back(*(bias = graph.input("bias", {DType::f32, {6}})));
    const Value loss = ops::linear_cross_entropy(h, w, labels, scale, 2, bias, has_bias ? 3 : 0);
    const auto grads = gradients(graph, loss, trained);
    graph.output("loss", loss);
    for (size_t i = 0; i < grads.size(); ++i) graph.output(fmt::format("grad{}", i), grads[i]);
    const Graph result = simplify(graph);
    EXPECT_EQ(count(result, ops::kLinearCrossEntropy), 0);
    EXPECT_EQ(count(result, ops::kLinearCrossEntropyGrad), 1);
    const auto inputs = test::some_inputs(graph);
    EXPECT_EQ(ops::evaluate(result, inputs), ops::evaluate(graph, inputs));
  }
}

TEST(Simplify, TheGradientOfATiedTableIsAddedWhereItLies) {
  Graph graph;
  const Value dy = graph.input("dy", {DType::bf16, {4, 8}}),
              ids = graph.input("ids", {DType::i32, {4}}),
              head = graph.input("head", {DType::f32, {6, 8}});
  const Value table = graph.add1(ops::kEmbeddingGrad, {dy, ids}, {{"rows", int64_t{6}}});
  graph.output("dw", table + ops::tanh(head));
  const Graph result = simplify(graph);
  EXPECT_EQ(count(result, ops::kAdd), 0);
  EXPECT_EQ(count(result, ops::kEmbeddingGrad), 1);
  const auto inputs = test::some_inputs(graph);
  EXPECT_EQ(ops::evaluate(result, inputs), ops::evaluate(graph, inputs));
}

TEST(Simplify, ALargerGraphKeepsItsValues) {
  Graph graph;
  const Value x = graph.input("x", {DType::f64, {4, 4}}),
              w = graph.input("w", {DType::f64, {4, 4}});
  Value y = x;
  for (int i = 0; i < 3; ++i) y = ops::add(ops::multiply(ops::softmax(ops::linear(y, w)), 1), -0.0);
  const Value loss = ops::reduce_sum(y * y, {0, 1});
  const auto grads = gradients(graph, loss, std::vector{x, w});
  graph.output("loss", loss);
  graph.output("dx", grads[0]);
  graph.output("dw", grads[1]);
  const Graph result = simplify(graph);
  EXPECT_LT(result.nodes().size(), graph.nodes().size());
  const auto inputs = test::some_inputs(graph);
  EXPECT_EQ(ops::evaluate(result, inputs), ops::evaluate(graph, inputs));
}

}  // namespace
}  // namespace rhea::passes
