// Gradients against central differences; fan-out, integers, stop_gradient, second order.
#include "rhea/passes/autodiff.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <functional>

#include "rhea/base/error.h"
#include "rhea/passes/test_graphs.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Type;
using ir::Value;
using Build = std::function<Value(Graph&, const std::vector<Value>&)>;
using test::count;

// The gradients of `build` towards every operand against central differences in f64.
void expect_gradients(const std::vector<Type>& types, const Build& build) {
  Graph graph;
  std::vector<Value> operands;
  for (size_t i = 0; i < types.size(); ++i)
    operands.push_back(graph.input(fmt::format("x{}", i), types[i]));
  const Value loss = build(graph, operands);
  const auto grads = gradients(graph, loss, operands);
  graph.output("loss", loss);
  for (size_t i = 0; i < grads.size(); ++i) {
    ASSERT_TRUE(grads[i].valid()) << "operand " << i;
    EXPECT_EQ(grads[i].shape(), types[i].shape);
    graph.output(fmt::format("grad{}", i), grads[i]);
  }
  auto inputs = test::some_inputs(graph);
  const auto results = ops::evaluate(graph, inputs);
  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < types.size(); ++i) {
    auto& tensor = inputs.at(fmt::format("x{}", i));
    for (size_t k = 0; k < tensor.size(); ++k) {
      const double here = tensor[k];
      tensor[k] = here + kStep;
      const double above = ops::evaluate(graph, inputs).at("loss")[0];
      tensor[k] = here - kStep;
      const double below = ops::evaluate(graph, inputs).at("loss")[0];
      tensor[k] = here;
      const double expected = (above - below) / (2 * kStep);
      EXPECT_NEAR(results.at(fmt::format("grad{}", i))[k], expected,
                  1e-7 + 1e-6 * std::abs(expected))
          << "operand " << i << " element " << k;
    }
  }
}

Value sum(Value x) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < x.type().rank(); ++d) dims.push_back(d);
  return ops::reduce_sum(x, dims);
}

const Type kMatrix{DType::f64, {3, 4}};

TEST(Autodiff, FanOutAddsTheCotangentsOfAllUses) {
  expect_gradients({kMatrix}, [](Graph&, const auto& x) {
    return sum(x[0] * x[0] + ops::tanh(x[0]) * x[0] + x[0] / ops::exponential(x[0]));
  });
}

TEST(Autodiff, ChainOfProductsSoftmaxAndReductions) {
  expect_gradients({kMatrix, {DType::f64, {5, 4}}, {DType::f64, {5}}}, [](Graph&, const auto& x) {
    const Value y = ops::linear(x[0], x[1]);
    const Value shifted = y + ops::broadcast_in_dim(x[2], {3, 5}, {1});
    const Value p = ops::softmax(shifted);
    return sum(p * y) +
           sum(ops::reduce_sum(ops::transpose(p, {1, 0}) * ops::transpose(y, {1, 0}), {0}));
  });
}

TEST(Autodiff, SlicesThatTileAreJoinedAndOthersPadded) {
  expect_gradients({{DType::f64, {2, 6}}}, [](Graph&, const auto& x) {
    const Value a = ops::slice_dim(x[0], 1, 0, 2), b = ops::slice_dim(x[0], 1, 2, 6);
    return sum(a * a) + sum(ops::sine(b));
  });
  expect_gradients({{DType::f64, {2, 6}}}, [](Graph&, const auto& x) {
    const Value a = ops::slice_dim(x[0], 1, 0, 4), b = ops::slice_dim(x[0], 1, 3, 5);
    return sum(a * a) + sum(ops::sine(b)) + sum(ops::tanh(x[0]));
  });
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 6}});
  const Value loss = sum(ops::slice_dim(x, 1, 0, 2)) + sum(ops::slice_dim(x, 1, 2, 6));
  gradients(graph, loss, std::vector{x});
  EXPECT_EQ(count(graph, ops::kPad), 0);
  EXPECT_EQ(count(graph, ops::kConcatenate), 1);
}

TEST(Autodiff, IntegerOperandsHaveNoGradient) {
  Graph graph;
  const Value table = graph.input("table", {DType::f64, {3, 2}});
  const Value ids = graph.input("ids", {DType::i32, {4}});
  const Value y = ops::embedding(table, ids);
  const Value loss = sum(y * y);
  const auto grads = gradients(graph, loss, std::vector{table, ids});
  EXPECT_FALSE(grads[1].valid());
  graph.output("grad", grads[0]);
  const auto results = ops::evaluate(graph, {{"table", {1, 2, 3, 4, 5, 6}}, {"ids", {2, 0, 2, 2}}});
  EXPECT_EQ(results.at("grad"), (ops::Tensor{2, 4, 0, 0, 30, 36}));
}

TEST(Autodiff, NothingFlowsToWhatTheLossDoesNotRead) {
  Graph graph;
  const Value x = graph.input("x", kMatrix), unused = graph.input("unused", kMatrix);
  const auto grads = gradients(graph, sum(x), std::vector{x, unused});
  EXPECT_TRUE(grads[0].valid());
  EXPECT_FALSE(grads[1].valid());
}

TEST(Autodiff, StopGradientIsAConstant) {
  Graph graph;
  const Value x = graph.input("x", {DType::f64, {3}});
  const Value loss = sum(x * ops::stop_gradient(x * x));
  graph.output("grad", gradients(graph, loss, std::vector{x})[0]);
  EXPECT_EQ(ops::evaluate(graph, {{"x", {1, 2, -3}}}).at("grad"), (ops::Tensor{1, 4, 9}));

  Graph stopped;
  const Value y = stopped.input("y", {DType::f64, {3}});
  EXPECT_FALSE(gradients(stopped, sum(ops::stop_gradient(y)), std::vector{y})[0].valid());
}

TEST(Autodiff, GradientOfAGradient) {
  // d/dx sum(v * d/dx sum(x^3)) = 6 x v
  Graph graph;
  const Value x = graph.input("x", {DType::f64, {3}}), v = graph.input("v", {DType::f64, {3}});
  const Value first = gradients(graph, sum(x * x * x), std::vector{x})[0];
  const auto second = gradients(graph, sum(first * v), std::vector{x, v});
  graph.output("x", second[0]);
  graph.output("v", second[1]);
  const auto results = ops::evaluate(graph, {{"x", {1, 2, -3}}, {"v", {1, -1, 0.5}}});
  EXPECT_EQ(results.at("x"), (ops::Tensor{6, -12, -9}));
  EXPECT_EQ(results.at("v"), (ops::Tensor{3, 12, 27}));

  expect_gradients({kMatrix, {DType::f64, {5, 4}}}, [](Graph& g, const auto& in) {
    const Value h = ops::tanh(ops::linear(in[0], in[1]));
    const auto grads = gradients(g, sum(h * h), std::vector{in[0], in[1]});
    return sum(grads[0] * grads[0]) + sum(ops::sine(grads[1]));
  });
}

TEST(Autodiff, WeightsCastToBf16GetGradientsInF32) {
  Graph graph;
  const Value x = graph.input("x", {DType::bf16, {3, 4}});
  const Value w = graph.input("w", {DType::f32, {5, 4}});
  const Value y = ops::linear(x, ops::convert(w, DType::bf16));
  const auto grads = gradients(graph, sum(ops::convert(y, DType::f32)), std::vector{w, x});
  EXPECT_EQ(grads[0].type(), (Type{DType::f32, {5, 4}}));
  EXPECT_EQ(graph.node(grads[0].id).op, &ops::kDotGeneral);  // no rounding in between
  EXPECT_EQ(grads[1].dtype(), DType::bf16);
}

TEST(Autodiff, NodesCarryScopeAndLineOfWhatTheyDifferentiate) {
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  Value y;
  {
    const ir::Scope scope(graph, "layers.3");
    y = ops::tanh(x);
  }
  const auto forward = graph.nodes().size();
  const ir::Node tanh = graph.node(y.id);
  const Value loss = sum(y);
  const auto before_backward = graph.nodes().size();
  gradients(graph, loss, std::vector{x});
  ASSERT_GT(before_backward, forward);
  int64_t inside = 0;
  for (size_t i = before_backward; i < graph.nodes().size(); ++i) {
    const ir::Node& node = graph.nodes()[i];
    if (graph.scope_name(node) != "layers.3") continue;
    EXPECT_EQ(graph.location_name(node), graph.location_name(tanh) + " (gradient)");
    ++inside;
  }
  EXPECT_GE(inside, 3);  // dy * (1 - y^2)
}

std::vector<Type> same_type(std::span<const Type> in, const ir::Attrs&) { return {in[0]}; }

TEST(Autodiff, ARowWithoutVjpIsDifferentiatedThroughItsDecomposition) {
  static const ir::OpDef cube{.name = "test_cube",
                              .infer = same_type,
                              .decompose = [](Graph&, std::span<const Value> in, const ir::Attrs&) {
                                return std::vector{in[0] * in[0] * in[0]};
                              }};
  expect_gradients({kMatrix},
                   [](Graph& g, const auto& x) { return sum(g.add1(cube, {x[0]}) * x[0]); });
}

TEST(Autodiff, ARowWithNeitherIsAnErrorThatSaysWhere) {
  static const ir::OpDef opaque{.name = "test_opaque", .infer = same_type};
  Graph graph;
  const Value x = graph.input("x", kMatrix);
  Value y;
  {
    const ir::Scope scope(graph, "layers.0.ffn");
    y = graph.add1(opaque, {x});
  }
  try {
    gradients(graph, sum(y), std::vector{x});
    FAIL() << "no error";
  } catch (const Error& error) {
    const std::string text = error.what();
    for (const char* part : {"test_opaque", "layers.0.ffn", "autodiff_test.cpp"})
      EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
  }
  EXPECT_THROW(gradients(graph, x, std::vector{x}), Error);  // no scalar
}

}  // namespace
}  // namespace rhea::passes
