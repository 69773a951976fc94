// Graphs before and after prepare_in_update.
#include "rhea/passes/prepare_in_update.h"

#include <gtest/gtest.h>

#include "rhea/ops/ops.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Layout;
using ir::Type;
using ir::Value;

const Type kMatrix{DType::f32, {128, 64}}, kVector{DType::f32, {64}};

int count(const Graph& graph, const ir::OpDef& op) {
  int found = 0;
  for (const auto& node : graph.nodes()) found += node.op == &op ? 1 : 0;
  return found;
}

void add_adam(Graph& graph, const std::string& name, const Type& type, Value clip, Value lr,
              Value step) {
  const Value operands[] = {graph.input(name, type),
                            graph.input("grad." + name, type),
                            graph.input("m." + name, type),
                            graph.input("v." + name, type),
                            clip,
                            lr,
                            step};
  const auto results = graph.add(ops::kAdam, operands);
  graph.output("new." + name, results[0], name);
  graph.output("new.m." + name, results[1], "m." + name);
  graph.output("new.v." + name, results[2], "v." + name);
}

Graph make_update() {
  Graph update;
  const Value clip = update.input("clip", {DType::f32, {}}),
              lr = update.input("lr", {DType::f32, {}}),
              step = update.input("step", {DType::i64, {}});
  add_adam(update, "w", kMatrix, clip, lr, step);
  add_adam(update, "norm", kVector, clip, lr, step);
  return update;
}

TEST(PrepareInUpdate, CopiesOfAMatrixAreWrittenByTheOptimizer) {
  Graph prepare;
  const Value w = ops::convert(prepare.input("w", kMatrix), DType::bf16);
  prepare.output("forward", ops::pack(w, Layout::panels_nk));
  prepare.output("backward", ops::pack(w, Layout::panels_kn));
  prepare.output("norm_bf16", ops::convert(prepare.input("norm", kVector), DType::bf16));

  const Graph merged = prepare_in_update(make_update(), prepare);
  EXPECT_EQ(count(merged, ops::kAdamPack), 1);
  EXPECT_EQ(count(merged, ops::kAdam), 1);  // of the vector
  EXPECT_EQ(count(merged, ops::kPack), 0);
  EXPECT_EQ(count(merged, ops::kConvert), 1);  // of the vector
  for (const auto& out : prepare.outputs()) {
    const auto* found = merged.find_output(out.name);
    ASSERT_NE(found, nullptr) << out.name;
    EXPECT_EQ(merged.type(found->value), prepare.type(out.value)) << out.name;
  }
  EXPECT_EQ(merged.find_output("new.w")->donates, "w");
}

TEST(PrepareInUpdate, WhatIsNoCopyIsComputedFromTheNewParameter) {
  Graph prepare;
  const Value w = prepare.input("w", kMatrix), frozen = prepare.input("frozen", kMatrix);
  const Value both[] = {ops::convert(w, DType::bf16), ops::convert(frozen, DType::bf16)};
  prepare.output("joined", ops::pack(ops::concatenate(both, 0), Layout::panels_nk));

  const Graph merged = prepare_in_update(make_update(), prepare);
  // The row-major cast of w is an operand of the join and still written in the pass of adam.
  EXPECT_EQ(count(merged, ops::kAdamPack), 1);
  EXPECT_EQ(count(merged, ops::kConcatenate), 1);
  EXPECT_EQ(count(merged, ops::kPack), 1);
  EXPECT_EQ(count(merged, ops::kConvert), 1);  // of the frozen parameter, which nothing updates
  EXPECT_NE(merged.find_input("frozen"), nullptr);
}

TEST(PrepareInUpdate, AnOpWithSeveralResultsIsMadeOnce) {
  Graph prepare;
  const auto best = ops::top_k(prepare.input("w", kMatrix), 2);
  prepare.output("values", best[0]);
  prepare.output("places", best[1]);

  const Graph merged = prepare_in_update(make_update(), prepare);
  EXPECT_EQ(count(merged, ops::kTopK), 1);
  EXPECT_EQ(merged.type(merged.find_output("values")->value).dtype, DType::f32);
  EXPECT_EQ(merged.type(merged.find_output("places")->value).dtype, DType::i32);
}

}  // namespace
}  // namespace rhea::passes
