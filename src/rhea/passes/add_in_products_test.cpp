// Gradients added where those of the microbatches before lie: which, and that nothing else changes.
#include "rhea/passes/add_in_products.h"

#include <gtest/gtest.h>

#include <string_view>

#include "rhea/ir/print.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/table.h"
#include "rhea/passes/test_graphs.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Value;

Graph after(const Graph& graph) { return add_in_products(graph, Isa::avx512); }

Value add_to(Graph& graph, const char* name, Value value) {
  const Value sum = graph.input(name, value.type()) + value;
  graph.output(name, sum, name);
  return sum;
}

// x [4,3] and dy [4,2], f32, ids [4]: gradients of a layer, of a table of 5 rows and of a norm.
Graph three_gradients() {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 3}}),
              dy = graph.input("dy", {DType::f32, {4, 2}}),
              ids = graph.input("ids", {DType::i32, {4}});
  add_to(graph, "grad.w", ops::dot_general(dy, x, 0, 0, DType::f32));
  add_to(graph, "grad.table", graph.add1(ops::kEmbeddingGrad, {x, ids}, {{"rows", int64_t{5}}}));
  add_to(graph, "grad.norm", ops::reduce_sum(x, {0}));
  return graph;
}

TEST(AddInProducts, ProductsAndTablesAddToTheirGradients) {
  const Graph before = three_gradients(), graph = after(before);
  ASSERT_EQ(graph.outputs().size(), 3U);
  const auto made_by = [&](size_t output) -> const ir::Node& {
    return graph.node(graph.outputs()[output].value);
  };
  EXPECT_EQ(made_by(0).op, &ops::kWeightGradAdd);
  EXPECT_EQ(made_by(0).inputs[2], graph.find_input("grad.w")->value);
  EXPECT_EQ(made_by(1).op, &ops::kEmbeddingGrad);
  EXPECT_EQ(made_by(1).inputs[2], graph.find_input("grad.table")->value);
  EXPECT_EQ(made_by(2).op, &ops::kAdd);
  for (size_t o = 0; o < 3; ++o) EXPECT_EQ(graph.outputs()[o].donates, before.outputs()[o].donates);
  EXPECT_EQ(test::count(graph, ops::kAdd), 1) << ir::to_text(graph);
  EXPECT_EQ(test::count(graph, ops::kDotGeneral), 0) << ir::to_text(graph);
  const auto inputs = test::some_inputs(before);
  EXPECT_EQ(ops::evaluate(graph, inputs), ops::evaluate(before, inputs));
}

TEST(AddInProducts, LeavesWhatElseReadsTheProductOrTheGradient) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 3}}),
              dy = graph.input("dy", {DType::f32, {4, 2}});
  const Value dw = ops::dot_general(dy, x, 0, 0, DType::f32);
  add_to(graph, "grad.w", dw);
  graph.output("dw", dw);
  const Value read_twice = graph.input("grad.v", {DType::f32, {2, 3}});
  graph.output("grad.v", read_twice + ops::dot_general(dy, x * x, 0, 0, DType::f32), "grad.v");
  graph.output("old", ops::multiply(read_twice, 2));
  const Value sum_twice = add_to(graph, "grad.u", ops::dot_general(dy * dy, x, 0, 0, DType::f32));
  graph.output("new", ops::multiply(sum_twice, 2));
  EXPECT_EQ(test::count(after(graph), ops::kWeightGradAdd), 0) << ir::to_text(after(graph));
}

TEST(AddInProducts, LeavesOtherProductsAndAddsAlone) {
  Graph graph;
  const Value x = graph.input("x", {DType::f64, {4, 3}}),
              b = graph.input("b", {DType::bf16, {4, 3}});
  add_to(graph, "f64", ops::dot_general(x, x, 0, 0, DType::f64));
  add_to(graph, "forward", ops::dot_general(b, b, 1, 1, DType::f32));
  add_to(graph, "bf16", ops::dot_general(b, b, 0, 0, DType::bf16));
  graph.output("not donated",
               graph.input("sum", {DType::f32, {3, 3}}) + ops::dot_general(b, b, 0, 0, DType::f32));
  EXPECT_EQ(ir::to_text(after(graph)), ir::to_text(graph));
}

TEST(AddInProducts, KernelsFromOutsideSeeTheirNodesAsBefore) {
  for (const auto& [op, products] :
       {std::pair{"add", 1}, {"dot_general", 1}, {"embedding_grad", 0}, {"tanh", 0}}) {
    const ops::ScopedAdditions scope;
    ops::add_cpu_kernel(
        op,
        ops::to_cpu_kernel(
            {.name = "mine", .run = [](const ir::KernelArgs&, const ir::OpInstance&) {}}),
        "test");
    const Graph graph = after(three_gradients());
    EXPECT_EQ(test::count(graph, ops::kDotGeneral), products) << op;
    const bool sees_tables = std::string_view(op) == "embedding_grad";
    for (const ir::Node& node : graph.nodes()) {
      if (node.op == &ops::kEmbeddingGrad && sees_tables) {
        EXPECT_EQ(node.inputs.size(), 2U);
      }
    }
  }
}

}  // namespace
}  // namespace rhea::passes
