// What the prediction depends on.
#include "rhea/step_time.h"

#include <gtest/gtest.h>

namespace rhea {
namespace {

using exec::cpu::NodeReport;

constexpr exec::cpu::Limits kLimits{.flops_f32 = 5e11, .flops_bf16 = 1e12, .bytes = 1e11};

NodeReport node(const char* op, ir::Type type, ir::Cost cost) {
  NodeReport made;
  made.op = op;
  made.type = std::move(type);
  made.cost = cost;
  return made;
}

TEST(StepTime, follows_the_slower_of_flops_and_bytes) {
  const ir::Type bf16{DType::bf16, {2048, 768}}, f32{DType::f32, {2048, 768}};
  const double product = predicted_seconds(node("dot_general", bf16, {1e10, 1e6}), kLimits);
  EXPECT_GT(product, 1e10 / kLimits.flops_bf16);
  EXPECT_LT(product, 1.5 * 1e10 / kLimits.flops_bf16);
  EXPECT_GT(predicted_seconds(node("dot_general", f32, {1e10, 1e6}), kLimits), 1.5 * product);
  const double pass = predicted_seconds(node("adam", f32, {1e8, 1e9}), kLimits);
  EXPECT_GT(pass, 1e9 / kLimits.bytes);
  EXPECT_LT(pass, 2 * 1e9 / kLimits.bytes);
}

TEST(StepTime, small_heads_cost_more_per_flop) {
  const auto attention = [](int64_t width) {
    return predicted_seconds(node("attention", {DType::bf16, {2048, 8, width}}, {1e10, 1e6}),
                             kLimits);
  };
  EXPECT_GT(attention(16), 1.2 * attention(64));
  EXPECT_EQ(attention(64), attention(128));
}

TEST(StepTime, an_op_that_nobody_measured_has_a_time) {
  const double seconds =
      predicted_seconds(node("hyperbolic", {DType::f32, {1 << 20}}, {1e6, 8e6}), kLimits);
  EXPECT_GT(seconds, 8e6 / kLimits.bytes);
  EXPECT_LT(seconds, 10 * 8e6 / kLimits.bytes);
}

}  // namespace
}  // namespace rhea
