// Graphs in f64: with and without a pool, what they take, and the products below.
#include "rhea/ops/evaluate.h"

#include <gtest/gtest.h>

#include <array>

#include "rhea/base/thread_pool.h"
#include "rhea/ops/f64_product.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/row.h"

namespace rhea::ops {
namespace {

Tensor numbers(size_t count, double scale = 1) {
  Tensor made(count);
  for (size_t i = 0; i < count; ++i)
    made[i] = scale * (static_cast<double>(i * 7919 % 1009) / 504.5 - 1);
  return made;
}

// Any sizes around its blocks, any strides: the bits of the plain loops.
TEST(F64Product, HasTheBitsOfThePlainLoops) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                                {3, 9, 300},
                                {2, 70, 5},
                                {5, 64, 257},
                                {4, 8, 0},
                                {0, 3, 2}}) {
    const Tensor a = numbers(static_cast<size_t>(m * k)), b = numbers(static_cast<size_t>(k * n));
    for (const bool a_km : {false, true}) {
      for (const bool b_nk : {false, true}) {
        Tensor c(static_cast<size_t>(m * n), 0.5), expected = c;
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j)
            for (int64_t p = 0; p < k; ++p)
              expected[static_cast<size_t>(i * n + j)] +=
                  a[static_cast<size_t>(a_km ? p * m + i : i * k + p)] *
                  b[static_cast<size_t>(b_nk ? j * k + p : p * n + j)];
        add_f64_product(
            m, n, k, a_km ? row_major(a.data(), m).transposed() : row_major(a.data(), k),
            b_nk ? row_major(b.data(), k).transposed() : row_major(b.data(), n), c.data());
        EXPECT_EQ(c, expected) << m << " " << n << " " << k << " " << a_km << b_nk;
      }
    }
  }
}

// A layer's worth of large nodes, with an odd number of rows: cut by rows, by columns and by heads.
TEST(Evaluate, APoolChangesNoBit) {
  ir::Graph graph;
  const int64_t tokens = 251, heads = 6, kv_heads = 2, width = 64;
  const ir::Value x = graph.input("x", {DType::f32, {tokens, 384}});
  const ir::Value wq = graph.input("wq", {DType::f32, {heads * width, 384}});
  const ir::Value wk = graph.input("wk", {DType::f32, {kv_heads * width, 384}});
  const ir::Value positions = iota(graph, {tokens}, DType::i32, 0);
  const ir::Value q = reshape(linear(x, wq), {tokens, heads, width});
  const ir::Value k = reshape(linear(x, wk), {tokens, kv_heads, width});
  const ir::Value o = attention(q, k, k, positions, {.scale = 0.125, .seq_len = tokens});
  const ir::Value flat = softmax(reshape(o, {tokens, heads * width}));
  graph.output("y", multiply(flat, flat));
  graph.output("dw", dot_general(flat, x, 0, 0, DType::f32));
  const std::map<std::string, Tensor> inputs = {
      {"x", numbers(static_cast<size_t>(tokens * 384))},
      {"wq", numbers(static_cast<size_t>(heads * width * 384), 0.1)},
      {"wk", numbers(static_cast<size_t>(kv_heads * width * 384), 0.1)}};
  EXPECT_GT(evaluation_cost(graph).flops, 1e8);
  const auto alone = evaluate(graph, inputs);
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    EXPECT_EQ(evaluate(graph, inputs, &pool), alone) << threads << " threads";
  }
}

// Of a chain, one tensor and the next.
TEST(Evaluate, CostsCountWhatIsAliveAtTheSameTime) {
  ir::Graph graph;
  ir::Value x = graph.input("x", {DType::f32, {4}});
  for (int i = 0; i < 10; ++i) x = exponential(x);
  graph.output("y", x);
  EXPECT_EQ(evaluation_cost(graph).bytes, 2 * 4 * 8);
}

}  // namespace
}  // namespace rhea::ops
