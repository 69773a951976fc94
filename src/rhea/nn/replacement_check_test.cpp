// Parameters that are stored otherwise, and what a replacement must keep.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "rhea/nn/feed_forward.h"
#include "rhea/ops/ops.h"

namespace rhea::nn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> counted(int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

// What the parameter holds when the stock tensor counts up from 0; -1 where nothing was written.
std::vector<float> stored(const StoredBlock& block, const Shape& stock, int64_t size) {
  std::vector<float> made(static_cast<size_t>(size), -1);
  const auto values = counted(ir::num_elements(stock));
  scatter(block, stock, 4, values.data(), made.data());
  std::vector<float> back(values.size(), -1);
  gather(block, stock, 4, made.data(), back.data());
  for (size_t i = 0; i < back.size(); ++i)
    if (back[i] >= 0) {
      EXPECT_EQ(back[i], values[i]);
    }
  return made;
}

TEST(StoredBlock, TransposesMergesAndSplits) {
  EXPECT_THAT(stored(stored_in({3, 2}, {0, 0}, {2, 3}, {1, 0}), {2, 3}, 6),
              ElementsAre(0, 3, 1, 4, 2, 5));
  // The right half of the columns.
  EXPECT_THAT(stored(stored_in({2, 4}, {0, 2}, {2, 2}), {2, 2}, 8),
              ElementsAre(-1, -1, 0, 1, -1, -1, 2, 3));
  // Rows 1 and 2 of a stock tensor of 3.
  EXPECT_THAT(stored(stored_in({2, 2}, {0, 0}, {3, 2}, {}, 1), {3, 2}, 4), ElementsAre(2, 3, 4, 5));
  // [E, 2F, D] from [E, F, D].
  EXPECT_THAT(stored(stored_in({2, 2, 2}, {0, 1, 0}, {2, 1, 2}), {2, 1, 2}, 8),
              ElementsAre(-1, -1, 0, 1, -1, -1, 2, 3));
  // [E, F, D] from [F, D] of expert 1.
  EXPECT_THAT(stored(stored_in({2, 2, 2}, {1, 0, 0}, {2, 2}), {2, 2}, 8),
              ElementsAre(-1, -1, -1, -1, 0, 1, 2, 3));
}

TEST(StoredBlock, RefusesWhatDoesNotFit) {
  EXPECT_THROW(stored_in({2, 2}, {0, 1}, {2, 2}), Error);
  EXPECT_THROW(stored_in({2, 2}, {0}, {2, 2}), Error);
  EXPECT_THROW(stored_in({2, 2}, {0, 0}, {2, 2}, {1, 1}), Error);
  EXPECT_THROW(stored_in({2, 2}, {0, 0}, {2, 2}, {2, 0}), Error);
  EXPECT_THROW(stored_in({2, 2}, {0, 0}, {2, 2}, {}, 2), Error);
}

// y = x w with w stored transposed; the stock module is Linear.
struct Transposed {
  struct Config : Linear::Config {
    int64_t stock_rows = 0;
    Value forward(Trace& trace, Value x) const override {
      const Shape shape = {in_features, out_features};
      const Shape stock = {stock_rows, in_features};
      const Value w =
          trace.parameter("weight_t", shape,
                          std::vector<Trace::BlockSpec>{{"weight", stock, init.init(),
                                                         stored_in(shape, {0, 0}, stock, {1, 0})}});
      return ops::linear(x, ops::transpose(w, {1, 0}));
    }
  };
};

Trace& traced(ir::Graph& graph, std::unique_ptr<Trace>& trace, const Transposed::Config& mine,
              const Linear::Config& stock) {
  trace = std::make_unique<Trace>(graph, TraceOptions{.num_tokens = 4, .seq_len = 4});
  Transposed::Config made = mine;
  made.replaced = std::make_shared<const Replaced>(Replaced{"mine", "w1", stock});
  call(*trace, "w1", static_cast<const Linear::Config&>(made),
       graph.input("x", {DType::f32, {4, stock.in_features}}));
  return *trace;
}

Linear::Config linear(int64_t in, int64_t out) {
  Linear::Config made;
  made.in_features = in;
  made.out_features = out;
  return made;
}

Transposed::Config transposed(int64_t in, int64_t out, int64_t stock_rows) {
  Transposed::Config made;
  static_cast<Linear::Config&>(made) = linear(in, out);
  made.stock_rows = stock_rows;
  return made;
}

TEST(ReplacementCheck, TakesAParameterThatIsStoredOtherwise) {
  ir::Graph graph;
  std::unique_ptr<Trace> trace;
  traced(graph, trace, transposed(3, 2, 2), linear(3, 2));
  EXPECT_THAT(trace->notes(), ElementsAre());
  ASSERT_EQ(trace->parameters().size(), 1U);
  const Parameter& parameter = trace->parameters()[0];
  EXPECT_EQ(parameter.fqn, "w1.weight_t");
  EXPECT_EQ(parameter.parts[0].fqn, "w1.weight");
  EXPECT_EQ(checkpoint_shape(parameter, parameter.parts[0]), (Shape{2, 3}));
}

TEST(ReplacementCheck, NamesBothTypesAndShapes) {
  ir::Graph graph;
  std::unique_ptr<Trace> trace;
  try {
    traced(graph, trace, transposed(3, 4, 4), linear(3, 2));
    FAIL() << "another width was accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("Override 'mine' changes what w1 gives: Linear.Config "
                                        "gives (f32[4,2]), the replacement gives (f32[4,4])"));
  }
}

}  // namespace
}  // namespace rhea::nn
