// Graphs in f64: with and without a pool, what they take, and the products below.
#include "rhea/ops/evaluate.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "rhea/base/error.h"
#include "rhea/base/thread_pool.h"
#include "rhea/ops/blocks.h"
#include "rhea/ops/cost.h"
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
                                {1027, 65, 3},
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

// ---- rows whose reference tells how it was called
std::atomic<int> calls = 0;
std::atomic<size_t> most_memory = 0;

size_t memory_in_use() {
  const auto memory = mallinfo2();
  return memory.uordblks + memory.hblkhd;
}
void note_call() {
  ++calls;
  const size_t now = memory_in_use();
  size_t before = most_memory;
  while (before < now && !most_memory.compare_exchange_weak(before, now)) {
  }
}

// Twice the sum of its operands, dear enough to be cut.
std::vector<ir::Type> first_type(std::span<const ir::Type> in, const ir::Attrs&) { return {in[0]}; }
const OpDef kDear{
    .name = "evaluate_test_dear",
    .infer = first_type,
    .shard = shard_elementwise,
    .cost = cost_per_element(1e5),
    .reference =
        [](const ir::ReferenceArgs& args) {
          note_call();
          for (const Tensor& x : args.in)
            for (size_t i = 0; i < x.size(); ++i) args.out[0][i] += 2 * x[i];
        },
};
// The same for one operand, with the number of its elements as an attribute: it cannot be cut,
// though its shard cell says so.
OpDef sized(std::string_view name, bool infer_throws) {
  return {
      .name = name,
      .attrs = {{"size", ir::AttrKind::i64, {}}},
      .infer = [infer_throws](std::span<const ir::Type> in,
                              const ir::Attrs& attrs) -> std::vector<ir::Type> {
        if (infer_throws && in[0].shape[0] != attrs.i64("size"))
          throw Error("size is {}, the operand {}", attrs.i64("size"), to_string(in[0]));
        return {{in[0].dtype, {attrs.i64("size")}}};
      },
      .shard = shard_elementwise,
      .cost = cost_per_element(1e5),
      .reference =
          [](const ir::ReferenceArgs& args) {
            note_call();
            for (size_t i = 0; i < static_cast<size_t>(args.attrs.i64("size")); ++i)
              args.out[0][i] = 2 * args.in[0].at(i);
          },
  };
}
const OpDef kSized = sized("evaluate_test_sized", false);
const OpDef kStrict = sized("evaluate_test_strict", true);
// x + x, then twice that, by other rows.
const OpDef kDecomposed{
    .name = "evaluate_test_decomposed",
    .infer = first_type,
    .decompose =
        [](ir::Graph& graph, std::span<const Value> in, const ir::Attrs&) {
          return std::vector{graph.add1(kDear, {add(in[0], in[1])})};
        },
};
// Its operand.
const OpDef kSame{
    .name = "evaluate_test_same",
    .infer = first_type,
    .decompose = [](ir::Graph&, std::span<const Value> in,
                    const ir::Attrs&) { return std::vector{in[0]}; },
};

// Results with and without a pool, which must agree, and the calls of both.
struct Evaluated {
  std::map<std::string, Tensor> results;
  int calls_alone, calls_in_pool;
};
Evaluated evaluate_twice(const ir::Graph& graph, const std::map<std::string, Tensor>& inputs) {
  Evaluated made{{}, 0, 0};
  calls = 0;
  made.results = evaluate(graph, inputs);
  made.calls_alone = calls.exchange(0);
  ThreadPool pool(3);
  EXPECT_EQ(evaluate(graph, inputs, &pool), made.results);
  made.calls_in_pool = calls;
  return made;
}

// Whose small multiples are exact.
Tensor whole_numbers(size_t count) {
  Tensor made(count);
  for (size_t i = 0; i < count; ++i) made[i] = static_cast<double>(i * 7919 % 1009);
  return made;
}
Tensor times(double factor, Tensor x) {
  for (double& each : x) each *= factor;
  return x;
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
  graph.output("squares", dot_general(flat, flat, 0, 0, DType::f32));
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
  std::vector<std::string> cut;
  for (const ir::Node& node : graph.nodes()) {
    std::vector<ir::Type> in;
    for (const ir::ValueId id : node.inputs) in.push_back(graph.type(id));
    const ir::OpInstance op{node.op, in, node.outputs, &node.attrs};
    const auto blocks = cut_into_blocks(op, cost_of(op).flops, 3);
    if (!blocks) continue;
    cut.emplace_back(node.op->name);
    EXPECT_GT(blocks->parts.size(), 1U) << node.op->name;
  }
  EXPECT_EQ(std::ranges::count(cut, "dot_general"), 4);
  EXPECT_EQ(std::ranges::count(cut, "attention"), 1);
}

TEST(Evaluate, APoolCutsLargeNodes) {
  ir::Graph graph;
  const ir::Value x = graph.input("x", {DType::f32, {25, 16}});
  graph.output("y", graph.add1(kDear, {x}));
  const Tensor values = whole_numbers(25 * 16);
  const Evaluated made = evaluate_twice(graph, {{"x", values}});
  EXPECT_EQ(made.results.at("y"), times(2, values));
  EXPECT_EQ(made.calls_alone, 1);
  EXPECT_EQ(made.calls_in_pool, 12) << "four blocks for each thread";
}

TEST(Evaluate, AnOperandThatIsReadTwiceIsThereTwiceAndAfterwards) {
  ir::Graph graph;
  const ir::Value x = graph.input("x", {DType::f32, {400}});
  const ir::Value twice = graph.add1(kDear, {x, x, x});
  graph.output("y", twice);
  graph.output("z", add(twice, x));
  graph.output("y again", twice);
  const Tensor values = whole_numbers(400);
  const Evaluated made = evaluate_twice(graph, {{"x", values}});
  EXPECT_EQ(made.calls_in_pool, 12);
  EXPECT_EQ(made.results.at("y"), times(6, values));
  EXPECT_EQ(made.results.at("y again"), made.results.at("y"));
  EXPECT_EQ(made.results.at("z"), times(7, values));
}

TEST(Evaluate, ARowThatKnowsNoPartsIsEvaluatedWhole) {
  for (const OpDef* row : {&kSized, &kStrict}) {
    ir::Graph graph;
    const ir::Value x = graph.input("x", {DType::f32, {400}});
    graph.output("y", graph.add1(*row, {x}, {{"size", int64_t{400}}}));
    const Tensor values = whole_numbers(400);
    const Evaluated made = evaluate_twice(graph, {{"x", values}});
    EXPECT_EQ(made.results.at("y"), times(2, values)) << row->name;
    EXPECT_EQ(made.calls_in_pool, 1) << row->name;
  }
}

// A head with its loss: no letter cuts it, and its sums are those of one thread.
TEST(Evaluate, APoolChangesNoBitOfALossWithItsHead) {
  const int64_t tokens = 130, width = 40, vocabulary = 1100;
  ir::Graph graph;
  std::vector<ir::Value> in = {graph.input("h", {DType::f32, {tokens, width}}),
                               graph.input("w", {DType::f32, {vocabulary, width}}),
                               graph.input("labels", {DType::i32, {tokens}}),
                               graph.input("scale", {DType::f32, {}}),
                               graph.input("bias", {DType::f32, {vocabulary}})};
  const ir::Attrs attrs = {{"num_chunks", int64_t{3}}, {"cap", 2.5}};
  graph.output("loss", graph.add(kLinearCrossEntropy, in, attrs)[0]);
  in.push_back(graph.input("dloss", {DType::f32, {}}));
  const auto grads = graph.add(kLinearCrossEntropyGrad, in, attrs);
  for (size_t i = 0; i < grads.size(); ++i)
    graph.output(std::string("dhwb").substr(i, 1), grads[i]);
  Tensor labels(static_cast<size_t>(tokens));
  for (size_t t = 0; t < labels.size(); ++t)
    labels[t] = t % 7 == 3 ? -100 : static_cast<double>(t * 31 % static_cast<size_t>(vocabulary));
  const std::map<std::string, Tensor> inputs = {
      {"h", numbers(static_cast<size_t>(tokens * width))},
      {"w", numbers(static_cast<size_t>(vocabulary * width), 0.3)},
      {"labels", labels},
      {"scale", {1.0 / 111}},
      {"bias", numbers(static_cast<size_t>(vocabulary), 0.1)},
      {"dloss", {1.5}}};
  const auto alone = evaluate(graph, inputs);
  EXPECT_EQ(alone.at("loss"), alone.at("d"));
  for (const int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(evaluate(graph, inputs, &pool), alone) << threads << " threads";
  }
}

// Its operands are lent to its decomposition, whose nodes are cut.
TEST(Evaluate, ARowWithoutReferenceIsCutInItsDecomposition) {
  ir::Graph graph;
  const ir::Value x = graph.input("x", {DType::f32, {400}});
  const ir::Value y = graph.add1(kDecomposed, {x, x});
  graph.output("y", y);
  graph.output("same", graph.add1(kSame, {y}));
  graph.output("z", add(x, y));
  const Tensor values = whole_numbers(400);
  const Evaluated made = evaluate_twice(graph, {{"x", values}});
  EXPECT_EQ(made.calls_in_pool, 12);
  EXPECT_EQ(made.results.at("y"), times(4, values));
  EXPECT_EQ(made.results.at("same"), times(4, values));
  EXPECT_EQ(made.results.at("z"), times(5, values));
}

// Of a chain, one tensor and the next.
TEST(Evaluate, CostsCountWhatIsAliveAtTheSameTime) {
  ir::Graph graph;
  ir::Value x = graph.input("x", {DType::f32, {4}});
  for (int i = 0; i < 10; ++i) x = exponential(x);
  graph.output("y", x);
  EXPECT_EQ(evaluation_cost(graph).bytes, 2 * 4 * 8);
}

TEST(Evaluate, CostsCountCopies) {
  const auto bytes = [](const auto& build, int threads) {
    ir::Graph graph;
    build(graph, graph.input("x", {DType::f32, {400}}));
    return evaluation_cost(graph, threads).bytes / (400 * 8);
  };
  const auto repeated = [](ir::Graph& graph, ir::Value x) {
    graph.output("y", graph.add1(kDear, {x, x}));
  };
  EXPECT_EQ(bytes(repeated, 1), 3);
  // Twelve blocks, of which three are there at a time; the largest has 34 elements.
  EXPECT_DOUBLE_EQ(bytes(repeated, 3), 3 + 3 * 3 * 34 / 400.0);
  const auto decomposed = [](ir::Graph& graph, ir::Value x) {
    graph.output("y", graph.add1(kDecomposed, {x, x}));
  };
  EXPECT_EQ(bytes(decomposed, 1), 4) << "x twice, x + x, y";
  const auto named_twice = [](ir::Graph& graph, ir::Value x) {
    graph.output("y", x);
    graph.output("z", x);
  };
  EXPECT_EQ(bytes(named_twice, 1), 2);
}

// Tensors of 8 MiB: what is read no more is freed, and the bound holds.
TEST(Evaluate, TakesNoMoreThanItsCost) {
  ir::Graph graph;
  const int64_t rows = 1024, columns = 1024;
  ir::Value x = graph.input("x", {DType::f32, {rows, columns}});
  for (int i = 0; i < 4; ++i) {
    x = graph.add1(kDear, {x, x});
    x = graph.add1(kDecomposed, {x, x});
  }
  graph.output("y", x);
  const std::map<std::string, Tensor> inputs = {
      {"x", numbers(static_cast<size_t>(rows * columns), 1e-6)}};
  ThreadPool pool(2);
  const double bound = evaluation_cost(graph, 2).bytes;
  const auto tensor = static_cast<double>(rows * columns * 8);
  EXPECT_LT(bound, 6 * tensor);
  const size_t before = memory_in_use();
  most_memory = 0;
  evaluate(graph, inputs, &pool);
  const double most = static_cast<double>(most_memory) - static_cast<double>(before);
  EXPECT_LT(most, bound + 0.1 * tensor);
}

}  // namespace
}  // namespace rhea::ops
