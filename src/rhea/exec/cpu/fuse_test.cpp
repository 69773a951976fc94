// Clusters on the executor: the same bits as node by node, and only where they pay.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "rhea/exec/cpu/test_run.h"
#include "rhea/ops/cluster/cluster.h"
#include "rhea/ops/ops.h"
#include "rhea/passes/fuse.h"

namespace rhea::exec::cpu {
namespace {

using ir::Graph;
using ir::Value;
using test::run_graph;

int64_t count(const Graph& graph, std::string_view op) {
  return std::ranges::count_if(graph.nodes(),
                               [&](const ir::Node& node) { return node.op->name == op; });
}

void expect_same_bits(const Graph& graph) {
  const auto expected = run_graph(graph, {.interpret = true}, 1);
  for (const Isa isa : {Isa::plain, Isa::avx2, Isa::avx512, Isa::avx512_bf16}) {
    if (isa > active_isa()) continue;
    for (const int threads : {1, 2, 5}) {
      const auto got = run_graph(graph, {.isa = isa}, threads);
      for (const auto& [name, bytes] : expected.outputs)
        EXPECT_TRUE(got.outputs.at(name) == bytes)
            << "output " << name << ", " << threads << " threads, " << isa_name(isa);
    }
  }
}

TEST(Fuse, ChainBecomesOnePass) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {37, 1000}});
  const Value y = g.input("y", {DType::bf16, {37, 1000}});
  const Value sum = ops::add(x, ops::convert(y, DType::f32));
  const Value half = ops::convert(ops::multiply(ops::exponential(sum), 0.5), DType::bf16);
  g.output("half", half);
  g.output("sum", sum);
  const Graph fused = passes::fuse(g);
  EXPECT_EQ(count(fused, "cluster"), 1);
  EXPECT_EQ(fused.nodes().size(), 3U);
  expect_same_bits(g);
  const auto result = run_graph(g);
  EXPECT_EQ(result.memory.arena, 0);
  ASSERT_EQ(result.nodes.size(), 1U);
  EXPECT_EQ(result.nodes[0].types, "bf16[37,1000], f32[37,1000] -> f32[37,1000], bf16[37,1000]");
}

TEST(Fuse, BroadcastsOfVectorsAndScalars) {
  Graph g;
  const Value x = g.input("x", {DType::f16, {6, 5, 130}});
  const Value row = g.input("row", {DType::f16, {130}});
  const Value plane = g.input("plane", {DType::f16, {5, 130}});
  const Value column = g.input("column", {DType::f16, {6}});
  const Value middle = g.input("middle", {DType::f16, {5}});
  const Value scalar = g.input("scalar", {DType::f16, {}});
  const ir::Shape shape = x.shape();
  Value y = ops::add(x, ops::broadcast_in_dim(row, shape, {2}));
  y = ops::multiply(y, ops::broadcast_in_dim(plane, shape, {1, 2}));
  y = ops::subtract(y, ops::broadcast_in_dim(column, shape, {0}));
  y = ops::add(y, ops::broadcast_in_dim(middle, shape, {1}));
  y = ops::maximum(y, ops::broadcast_in_dim(scalar, shape, {}));
  g.output("y", y);
  const Graph fused = passes::fuse(g);
  EXPECT_EQ(count(fused, "cluster"), 1);
  EXPECT_EQ(count(fused, "broadcast_in_dim"), 0);
  expect_same_bits(g);
}

TEST(Fuse, OpsWithKernelsOfTheirOwnStay) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {8, 64}});
  const Value w = g.input("w", {DType::f32, {64}});
  const Value sum = ops::add(x, x);
  const Value norm = ops::rms_norm(sum, w, 1e-5);
  g.output("y", ops::add(norm, sum));
  const Graph fused = passes::fuse(g);
  EXPECT_EQ(count(fused, "rms_norm"), 1);
  EXPECT_EQ(count(fused, "cluster"), 0);  // the norm needs the sum before the second add can run
  expect_same_bits(g);
}

TEST(Fuse, DoesNotKeepWideOperandsForNarrowResults) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {64, 64}});
  const Value w = g.input("w", {DType::f32, {64}});
  const Value wide = ops::rms_norm(x, w, 1e-5);
  const Value narrow = ops::convert(wide, DType::bf16);  // what a backward pass would keep
  Value y = x;
  for (int i = 0; i < 3; ++i) y = ops::rms_norm(y, w, 1e-5);
  g.output("y", ops::multiply(ops::convert(narrow, DType::f32), y));
  EXPECT_EQ(count(passes::fuse(g), "convert"), 1);
  expect_same_bits(g);
}

TEST(Fuse, InPlaceUpdateOfAnInput) {
  Graph g;
  const Value total = g.input("total", {DType::f32, {50, 333}});
  const Value x = g.input("x", {DType::bf16, {50, 333}});
  g.output("total", ops::add(total, ops::convert(x, DType::f32)), "total");
  const auto result = run_graph(g);
  ASSERT_EQ(result.nodes.size(), 1U);
  EXPECT_EQ(result.nodes[0].op, "cluster");
  expect_same_bits(g);
}

TEST(Fuse, MasksAndSelect) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {33, 65}});
  const Value y = g.input("y", {DType::f32, {33, 65}});
  const Value mask = ops::compare(x, y, "GE");
  g.output("mask", mask);
  g.output("y", ops::add(ops::select(mask, x, y), ops::convert(mask, DType::f32)));
  EXPECT_EQ(count(passes::fuse(g), "cluster"), 1);
  expect_same_bits(g);
}

// Random graphs: elementwise ops of three float types, broadcasts, constants, norms and products
// in between, values with several readers.
TEST(Fuse, RandomGraphsKeepTheirBits) {
  for (unsigned seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Graph g;
    const ir::Shape shape = {7, 96};
    std::vector<Value> values;
    for (int i = 0; i < 3; ++i) {
      const DType dtype = std::array{DType::f32, DType::bf16, DType::f16}[static_cast<size_t>(i)];
      values.push_back(g.input(fmt::format("x{}", i), {dtype, shape}));
    }
    const Value vector = g.input("vector", {DType::f32, {96}});
    const Value scalar = g.input("scalar", {DType::f32, {}});
    const auto pick = [&] { return values[random() % values.size()]; };
    for (int i = 0; i < 40; ++i) {
      const Value a = pick();
      const Value b = ops::convert(pick(), a.dtype());
      switch (random() % 12) {
        case 0:
          values.push_back(ops::add(a, b));
          break;
        case 1:
          values.push_back(ops::multiply(a, b));
          break;
        case 2:
          values.push_back(ops::subtract(a, b));
          break;
        case 3:
          values.push_back(ops::tanh(a));
          break;
        case 4:
          values.push_back(ops::add(a, 0.1));
          break;
        case 5:
          values.push_back(ops::convert(a, DType::bf16));
          break;
        case 6:
          values.push_back(ops::convert(a, DType::f32));
          break;
        case 7:
          values.push_back(ops::select(ops::compare(a, b, "LT"), a, b));
          break;
        case 8:
          values.push_back(
              ops::add(ops::convert(a, DType::f32), ops::broadcast_in_dim(vector, shape, {1})));
          break;
        case 9:
          values.push_back(
              ops::multiply(ops::convert(a, DType::f32), ops::broadcast_in_dim(scalar, shape, {})));
          break;
        case 10:
          values.push_back(ops::rms_norm(ops::convert(a, DType::f32), vector, 1e-5));
          break;
        default:
          values.push_back(ops::logistic(a));
          break;
      }
    }
    for (int i = 0; i < 4; ++i)
      g.output(fmt::format("y{}", i),
               ops::tanh(values[values.size() - 1 - static_cast<size_t>(i)]));
    expect_same_bits(g);
  }
}

}  // namespace
}  // namespace rhea::exec::cpu
