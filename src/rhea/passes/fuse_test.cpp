// Which nodes become one cluster, and which do not.
#include "rhea/passes/fuse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rhea/ir/verify.h"
#include "rhea/ops/cluster/cluster.h"
#include "rhea/ops/ops.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Value;
using testing::ElementsAre;

// The nodes that run, clusters as their bodies.
std::vector<std::string> run_nodes(const Graph& graph) {
  std::vector<std::string> names;
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == &ir::kInput || node.op == &ir::kConstant) continue;
    names.emplace_back(node.op == &ops::kCluster ? node.attrs.str("body") : node.op->name);
  }
  return names;
}

std::vector<std::string> fused(const Graph& graph) {
  const Graph result = fuse(graph);
  ir::verify(result);
  return run_nodes(result);
}

struct Block {
  Graph g;
  Value x = g.input("x", {DType::bf16, {64, 32}});
  Value y = g.input("y", {DType::bf16, {64, 32}});
  Value w = g.input("w", {DType::bf16, {32}});
  Value matrix = g.input("matrix", {DType::bf16, {32, 32}});
};

TEST(FusePass, ResidualAndNorm) {
  Block b;
  const Value sum = ops::add(b.x, b.y);
  b.g.output("sum", sum);
  b.g.output("y", ops::linear(ops::rms_norm(sum, b.w, 1e-5), b.matrix));
  EXPECT_THAT(fused(b.g), ElementsAre("add(0,1);rms_norm(3,2){eps=1e-05,weight_offset=0.0};->3,4",
                                      "dot_general"));
}

TEST(FusePass, GradientOfNormAndResidual) {
  Block b;
  const Value in[] = {b.x, b.w, b.y};
  const auto grads = b.g.add(ops::kRmsNormGrad, in, {{"eps", 1e-5}});
  b.g.output("dx", ops::add(grads[0], b.y));
  b.g.output("dw", grads[1]);
  EXPECT_THAT(fused(b.g),
              ElementsAre("rms_norm_grad(0,1,2){eps=1e-05,weight_offset=0.0};add(3,2);->4,5"));
}

TEST(FusePass, ANormAloneKeepsItsKernel) {
  Block b;
  b.g.output("y", ops::linear(ops::rms_norm(ops::linear(b.x, b.matrix), b.w, 1e-5), b.matrix));
  EXPECT_THAT(fused(b.g), ElementsAre("dot_general", "rms_norm", "dot_general"));
}

// The sum over all rows of a weight gradient is complete only when all tiles have run.
TEST(FusePass, SumsOverRowsAreReadAfterwards) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {32, 32}});  // square: all shapes would fit
  const Value w = g.input("w", {DType::f32, {32}});
  const Value in[] = {x, w, x};
  const auto grads = g.add(ops::kRmsNormGrad, in, {{"eps", 1e-5}});
  g.output("y", ops::multiply(grads[0], ops::broadcast_in_dim(grads[1], {32, 32}, {0})));
  EXPECT_THAT(fused(g),
              ElementsAre("rms_norm_grad",
                          "broadcast_in_dim(1){dims=[0],shape=[32,32]};multiply(0,2);->3"));
}

TEST(FusePass, NumbersGoBackAlongTheirRowsOnly) {
  const auto graph = [](int64_t dim) {
    Graph g;
    const Value x = g.input("x", {DType::f32, {16, 16}});
    const Value n = ops::reduce_sum(x, {1});
    g.output("y", ops::multiply(x, ops::broadcast_in_dim(n, {16, 16}, {dim})));
    return fused(g);
  };
  EXPECT_THAT(graph(0), ElementsAre("reduce_sum(0){dims=[1]};broadcast_in_dim(1){dims=[0],shape="
                                    "[16,16]};multiply(0,2);->3"));
  EXPECT_THAT(
      graph(1),
      ElementsAre("reduce_sum", "broadcast_in_dim(1){dims=[1],shape=[16,16]};multiply(0,2);->3"));
}

TEST(FusePass, ReductionsOfOtherDimsAndLongRowsStay) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {8, 20000}});
  g.output("columns", ops::reduce_sum(ops::exponential(x), {0}));
  g.output("rows", ops::reduce_sum(ops::tanh(x), {1}));
  EXPECT_THAT(fused(g), ElementsAre("exponential", "reduce_sum", "tanh", "reduce_sum"));
}

// The product needs the norm before the second sum exists.
TEST(FusePass, WhatANodeBetweenNeedsIsNotMoved) {
  Block b;
  const Value norm = ops::rms_norm(b.x, b.w, 1e-5);
  b.g.output("y", ops::add(norm, ops::linear(norm, b.matrix)));
  EXPECT_THAT(fused(b.g), ElementsAre("rms_norm", "dot_general", "add"));
}

// Through a broadcast that the product reads, the reduction is needed before.
TEST(FusePass, BroadcastsAreReadThrough) {
  Block b;
  const Value n = ops::reduce_max(b.x, {1});
  const Value spread = ops::broadcast_in_dim(n, {64, 32}, {0});
  const Value product = ops::linear(spread, b.matrix);
  b.g.output("y", ops::add(ops::add(b.x, spread), product));
  EXPECT_THAT(fused(b.g),
              ElementsAre("reduce_max", "broadcast_in_dim", "dot_general",
                          "broadcast_in_dim(1){dims=[0],shape=[64,32]};add(0,3);add(4,2);->5"));
}

}  // namespace
}  // namespace rhea::passes
