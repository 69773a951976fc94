// Slices and joins that move no data, on real rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rhea/exec/cpu/test_run.h"
#include "rhea/ops/ops.h"
#include "rhea/passes/autodiff.h"

namespace rhea::exec::cpu {
namespace {

using ir::Graph;
using ir::Value;
using test::run_graph;

std::vector<std::string> ops_of(const std::vector<NodeReport>& nodes) {
  std::vector<std::string> names;
  for (const NodeReport& node : nodes) names.push_back(node.op);
  return names;
}

void expect_same_bits(const Graph& graph) {
  const auto expected = run_graph(graph, {.interpret = true}, 1);
  for (const int threads : {1, 2, 5}) {
    const auto got = run_graph(graph, {}, threads, 2);
    for (const auto& [name, bytes] : expected.outputs)
      EXPECT_TRUE(got.outputs.at(name) == bytes) << "output " << name << ", " << threads;
  }
}

constexpr int64_t kT = 48, kN = 4, kK = 2, kH = 16, kD = 64;

struct Attention {
  Graph g;
  Value x, w, loss;
  explicit Attention(DType dtype) {
    x = g.input("x", {dtype, {kT, kD}});
    w = g.input("w", {dtype, {(kN + 2 * kK) * kH, kD}});
    const Value cos = g.input("cos", {DType::f32, {kT, kH / 2}});
    const Value sin = g.input("sin", {DType::f32, {kT, kH / 2}});
    const Value positions = g.input("positions", {DType::i32, {kT}});
    const Value qkv = ops::linear(x, w);
    const auto part = [&](int64_t begin, int64_t heads) {
      return ops::reshape(ops::slice_dim(qkv, 1, begin * kH, (begin + heads) * kH),
                          {kT, heads, kH});
    };
    const Value q = ops::rope(part(0, kN), cos, sin, positions, false);
    const Value k = ops::rope(part(kN, kK), cos, sin, positions, false);
    const Value v = part(kN + kK, kK);
    const Value o =
        ops::attention(q, k, v, positions, {.scale = 0.25, .seq_len = kT, .documents = false});
    const Value flat = ops::convert(ops::reshape(o, {kT * kN * kH}), DType::f32);
    loss = ops::reduce_sum(ops::multiply(flat, flat), {0});
    g.output("loss", loss);
  }
};

TEST(Views, FusedProjectionIsReadInPlace) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Attention a(dtype);
    const auto names = ops_of(run_graph(a.g).nodes);
    EXPECT_THAT(names, testing::Not(testing::Contains("slice")));
    EXPECT_THAT(names, testing::Not(testing::Contains("copy")));
    expect_same_bits(a.g);
  }
}

TEST(Views, GradientsAreWrittenIntoOneBuffer) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Attention a(dtype);
    const auto grads = passes::gradients(a.g, a.loss, std::array{a.x, a.w});
    a.g.output("dx", grads[0]);
    a.g.output("dw", grads[1]);
    const auto names = ops_of(run_graph(a.g).nodes);
    EXPECT_THAT(names, testing::Not(testing::Contains("pad")));
    EXPECT_THAT(names, testing::Not(testing::Contains("concatenate")));
    EXPECT_THAT(names, testing::Not(testing::Contains("copy")));
    expect_same_bits(a.g);
  }
}

TEST(Views, ReadersThatNeedWholeRowsGetACopy) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {32, 64}});
  const Value part = ops::slice_dim(x, 1, 16, 48);
  g.output("t", ops::transpose(part, {1, 0}));
  g.output("flat", ops::add(ops::reshape(part, {1024}), 1));
  expect_same_bits(g);
}

TEST(Views, RowsOfAnInputAndUnalignedPieces) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {32, 64}});
  g.output("rows", ops::add(ops::slice_dim(x, 0, 3, 9), 1));
  g.output("odd", ops::add(ops::slice_dim(x, 1, 3, 9), 1));
  g.output("self", ops::slice_dim(x, 0, 1, 32));
  expect_same_bits(g);
}

TEST(Views, JoinsOfResultsAndInputs) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {32, 32}});
  const Value y = g.input("y", {DType::f32, {32, 16}});
  const Value made = ops::exponential(x);
  const Value joined = ops::concatenate(std::array{made, ops::tanh(y)}, 1);
  g.output("sum", ops::reduce_sum(joined, {1}));
  g.output("with_input", ops::concatenate(std::array{made, y}, 1));
  g.output("twice", ops::add(ops::concatenate(std::array{made, made}, 1), 1));
  g.output("below", ops::add(ops::concatenate(std::array{made, x}, 0), 1));
  g.output("made", made);
  expect_same_bits(g);
}

}  // namespace
}  // namespace rhea::exec::cpu
