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

// Residual, norm and cast forward; cast, gradient of the norm and residual backward.
TEST(Fuse, NormsJoinTheirNeighbours) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    Graph g;
    const Value x = g.input("x", {dtype, {300, 96}});
    const Value y = g.input("y", {dtype, {300, 96}});
    const Value w = g.input("w", {dtype, {96}});
    const Value dy = g.input("dy", {DType::f32, {300, 96}});
    const Value sum = ops::add(x, y);
    g.output("sum", sum);
    g.output("norm", ops::convert(ops::rms_norm(sum, w, 1e-5), DType::bf16));
    const Value in[] = {x, w, ops::convert(dy, dtype)};
    const auto grads = g.add(ops::kRmsNormGrad, in, {{"eps", 1e-5}});
    g.output("dx", ops::add(grads[0], x));
    g.output("dw", grads[1]);
    const Graph fused = passes::fuse(g);
    EXPECT_EQ(count(fused, "cluster"), 2);
    EXPECT_EQ(fused.nodes().size(), 4U + 2U);
    expect_same_bits(g);
  }
}

// x[:, 64:160] of a wider product, written into a part of another one.
TEST(Fuse, RowsOfViews) {
  Graph g;
  const Value wide = g.input("wide", {DType::bf16, {40, 256}});
  const Value w = g.input("w", {DType::bf16, {32}});
  const Value table = g.input("table", {DType::f32, {4, 16}});
  const Value positions = g.input("positions", {DType::i32, {40}});
  std::vector<Value> parts;
  for (const int64_t start : {0, 64, 160}) {
    const Value heads = ops::reshape(ops::slice_dim(wide, 1, start, start + 96), {40, 3, 32});
    const Value norm = ops::rms_norm(heads, w, 1e-6);
    parts.push_back(ops::reshape(ops::rope(norm, table, table, positions, false), {40, 96}));
  }
  g.output("y", ops::concatenate(parts, 1));
  const Graph fused = passes::fuse(g);
  EXPECT_EQ(count(fused, "cluster"), 3);
  EXPECT_EQ(count(fused, "rope"), 0);
  expect_same_bits(g);
  EXPECT_EQ(run_graph(g).nodes.size(), 3U) << "a slice or a part was copied";
}

// softmax by hand, and what comes back along the rows from one number each.
TEST(Fuse, NumbersOfRows) {
  for (const ir::Shape& shape : {ir::Shape{33, 130}, ir::Shape{64, 64}, ir::Shape{5, 7, 20}}) {
    Graph g;
    const int64_t last = static_cast<int64_t>(shape.size()) - 1;
    std::vector<int64_t> outer;
    for (int64_t d = 0; d < last; ++d) outer.push_back(d);
    const Value x = g.input("x", {DType::f32, shape});
    const auto along = [&](Value numbers) { return ops::broadcast_in_dim(numbers, shape, outer); };
    const Value e = ops::exponential(ops::subtract(x, along(ops::reduce_max(x, {last}))));
    const Value sum = ops::reduce_sum(e, {last});
    g.output("y", ops::multiply(e, along(ops::divide(ops::add(sum, 1), ops::add(sum, 2)))));
    g.output("sum", sum);
    g.output("max", ops::reduce_max(x, {last}));
    EXPECT_EQ(count(passes::fuse(g), "reduce_sum"), 0);
    expect_same_bits(g);
  }
}

TEST(Fuse, DoesNotKeepWideOperandsForNarrowResults) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {64, 64}});
  const Value w = g.input("w", {DType::f32, {64, 64}});
  const Value wide = ops::linear(x, w);
  const Value narrow = ops::convert(wide, DType::bf16);  // what a backward pass would keep
  Value y = x;
  for (int i = 0; i < 3; ++i) y = ops::linear(y, w);
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

// Random graphs: elementwise ops of three float types, broadcasts, constants, norms, reductions and
// rotations of rows, values with several readers; square shapes, where rows and columns are alike.
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed)
      : random_(seed),
        shape_(std::array<ir::Shape, 3>{{{70, 96}, {24, 24}, {9, 4, 24}}}[seed % 3]),
        outer_(shape_.begin(), shape_.end() - 1) {
    constexpr std::array kTypes = {DType::f32, DType::bf16, DType::f16};
    for (const DType dtype : kTypes) {
      values_.push_back(graph_.input(fmt::format("x{}", values_.size()), {dtype, shape_}));
      numbers_.push_back(graph_.input(fmt::format("n{}", numbers_.size()), {dtype, outer_}));
    }
    vector_ = graph_.input("vector", {DType::f32, {shape_.back()}});
    scalar_ = graph_.input("scalar", {DType::f32, {}});
    table_ = graph_.input("table", {DType::f32, {4, 8}});
    positions_ = graph_.input("positions", {DType::i32, {shape_[0]}});
    for (int64_t d = 0; d < last(); ++d) outer_dims_.push_back(d);
    for (int i = 0; i < 40; ++i) add();
    for (int i = 0; i < 4; ++i)
      graph_.output(fmt::format("y{}", i),
                    ops::tanh(values_[values_.size() - 1 - static_cast<size_t>(i)]));
    graph_.output("numbers", ops::tanh(numbers_.back()));
    for (const Value& sum : sums_) graph_.output(fmt::format("sum{}", sum.id.node), sum);
  }

  const Graph& graph() const { return graph_; }

 private:
  int64_t last() const { return static_cast<int64_t>(shape_.size()) - 1; }
  Value pick(const std::vector<Value>& from) { return from[random_() % from.size()]; }
  Value wide(Value x) const { return ops::convert(x, DType::f32); }
  Value along_rows(Value numbers) const {
    return ops::broadcast_in_dim(numbers, shape_, outer_dims_);
  }

  void add() {
    const Value a = pick(values_), b = ops::convert(pick(values_), a.dtype());
    const Value n = pick(numbers_), m = ops::convert(pick(numbers_), n.dtype());
    switch (random_() % 20) {
      case 0:
        return values_.push_back(ops::add(a, b));
      case 1:
        return values_.push_back(ops::multiply(a, b));
      case 2:
        return values_.push_back(ops::subtract(a, b));
      case 3:
        return values_.push_back(ops::tanh(a));
      case 4:
        return values_.push_back(ops::add(a, 0.1));
      case 5:
        return values_.push_back(ops::convert(a, DType::bf16));
      case 6:
        return values_.push_back(wide(a));
      case 7:
        return values_.push_back(ops::select(ops::compare(a, b, "LT"), a, b));
      case 8:
        return values_.push_back(
            ops::add(wide(a), ops::broadcast_in_dim(vector_, shape_, {last()})));
      case 9:
        return values_.push_back(
            ops::multiply(wide(a), ops::broadcast_in_dim(scalar_, shape_, {})));
      case 10:
        return values_.push_back(
            ops::rms_norm(a, ops::convert(vector_, a.dtype()), 1e-5, random_() % 2 == 0 ? 0 : 1));
      case 11: {
        const Value in[] = {a, ops::convert(vector_, a.dtype()), b};
        const auto grads = graph_.add(ops::kRmsNormGrad, in, {{"eps", 1e-5}});
        values_.push_back(grads[0]);
        if (random_() % 2 == 0) sums_.push_back(grads[1]);
        return;
      }
      case 12:
        return values_.push_back(ops::layer_norm(a, std::nullopt, std::nullopt, 1e-5));
      case 13:
        return numbers_.push_back(ops::reduce_sum(a, {last()}));
      case 14:
        return numbers_.push_back(ops::reduce_max(a, {last()}));
      case 15:
        return numbers_.push_back(ops::logsumexp(a));
      case 16:
        return numbers_.push_back(ops::tanh(ops::subtract(n, m)));
      case 17:
        return values_.push_back(ops::multiply(ops::convert(a, n.dtype()), along_rows(n)));
      case 18:
        if (shape_.size() != 3) return values_.push_back(ops::softmax(a));
        return values_.push_back(ops::rope(a, table_, table_, positions_, random_() % 2 == 0));
      default:
        // Columns that have as many numbers as there are rows, where the shape is square.
        if (shape_[0] != shape_[1]) return values_.push_back(ops::logistic(a));
        return values_.push_back(
            ops::add(ops::convert(a, n.dtype()), ops::broadcast_in_dim(n, shape_, {1})));
    }
  }

  std::mt19937 random_;
  Graph graph_;
  ir::Shape shape_, outer_;
  std::vector<int64_t> outer_dims_;
  std::vector<Value> values_, numbers_, sums_;
  Value vector_, scalar_, table_, positions_;
};

TEST(Fuse, RandomGraphsKeepTheirBits) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    expect_same_bits(RandomGraph(seed).graph());
  }
}

}  // namespace
}  // namespace rhea::exec::cpu
