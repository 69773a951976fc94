// What is kept is the same to the letter; what is replaced has the readers of the original.
#include "rhea/passes/graph_copy.h"

#include <gtest/gtest.h>

#include "rhea/ir/print.h"
#include "rhea/passes/test_graphs.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Value;

// x + e^x, which takes over the memory of x, and e^x.
Graph sum_with_exp() {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {3}});
  const ir::Scope scope(graph, "layers.0");
  const Value y = ops::exponential(x);
  graph.output("sum", x + y, "x");
  graph.output("y", y);
  return graph;
}

TEST(GraphCopy, KeepsNamesScopesLinesAndDonations) {
  const Graph graph = sum_with_exp();
  Graph result;
  GraphCopy copy(graph, result);
  copy.add_nodes();
  copy.add_outputs();
  EXPECT_EQ(ir::to_text(result), ir::to_text(graph));
}

TEST(GraphCopy, ReadersReadWhatStandsForANode) {
  const Graph graph = sum_with_exp();
  Graph result;
  GraphCopy copy(graph, result);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const ir::Node& node = graph.nodes()[i];
    if (node.op == &ops::kExponential)
      copy.set(i, result.add_as(graph, node, ops::kNegate, copy.operands(node), {}));
    else
      copy.add(i);
  }
  copy.add_outputs();
  EXPECT_EQ(test::count(result, ops::kExponential), 0);
  ASSERT_EQ(result.outputs().size(), 2U);
  const ir::ValueId negated = result.outputs()[1].value;
  EXPECT_EQ(result.node(negated).op, &ops::kNegate);
  EXPECT_EQ(result.scope_name(result.node(negated)), "layers.0");
  EXPECT_EQ(result.node(result.outputs()[0].value).inputs[1], negated);
  EXPECT_EQ(copy[graph.outputs()[1].value].id, negated);
}

// A node of a graph that is there already stands for one of another graph.
TEST(GraphCopy, JoinsAGraphThatHasNodes) {
  const Graph graph = sum_with_exp();
  Graph result;
  const Value mine = result.input("mine", {DType::f32, {3}});
  GraphCopy copy(graph, result);
  copy.set(0, {mine});
  for (size_t i = 1; i < graph.nodes().size(); ++i) copy.add(i);
  EXPECT_EQ(result.inputs().size(), 1U);
  EXPECT_EQ(result.node(copy[graph.outputs()[1].value].id).inputs[0], mine.id);
}

}  // namespace
}  // namespace rhea::passes
