// How many tokens a chunk of the head has, and its loss in f64 in parts.
#include "rhea/ops/loss/loss.h"

#include <gtest/gtest.h>

#include "rhea/ops/evaluate.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {
namespace {

TEST(Chunks, TheLastOneIsShorter) {
  EXPECT_EQ(tokens_per_chunk(16, 8), 2);
  EXPECT_EQ(tokens_per_chunk(15, 8), 2);
  EXPECT_EQ(tokens_per_chunk(3, 8), 1);
  EXPECT_EQ(tokens_per_chunk(0, 8), 1);
}

TEST(Chunks, FusedOnesFollowNumChunks) {
  EXPECT_EQ(fused_tokens_per_chunk(2048, 1), 512);
  EXPECT_EQ(fused_tokens_per_chunk(2048, 8), 512);
  EXPECT_EQ(fused_tokens_per_chunk(2048, 32), 256);
  EXPECT_EQ(fused_tokens_per_chunk(512, 4), 512);
  EXPECT_EQ(fused_tokens_per_chunk(512, 8), 256);
  EXPECT_EQ(fused_tokens_per_chunk(512, 1000), 64);
  EXPECT_EQ(fused_tokens_per_chunk(100, 1), 128);  // padded to whole vectors
  EXPECT_EQ(fused_tokens_per_chunk(5, 1), 64);
}

// The parts of the reference last to first: whoever computes one, and when, changes no bit.
TEST(HeadReference, ThePartsMayRunInAnyOrder) {
  int64_t num_parts = 0;
  const ForEach backwards = [&](int64_t count, const std::function<void(int64_t)>& f) {
    num_parts += count;
    for (int64_t i = count; i-- > 0;) f(i);
  };
  const int64_t tokens = 70, width = 5, vocabulary = 130;
  const std::vector<ir::Type> in = {
      {DType::f32, {tokens, width}}, {DType::f32, {vocabulary, width}},
      {DType::i32, {tokens}},        {DType::f32, {}},
      {DType::f32, {vocabulary}},    {DType::f32, {}}};
  std::vector<Tensor> inputs;
  for (const ir::Type& type : in) {
    const auto count = static_cast<size_t>(ir::num_elements(type.shape));
    Tensor& made = inputs.emplace_back(count);
    for (size_t i = 0; i < count; ++i)
      made[i] = type.dtype == DType::i32 ? (i % 9 == 4 ? -100.0 : static_cast<double>(i))
                                         : static_cast<double>(i * 7919 % 1009) / 504.5 - 0.9;
  }
  const ir::Attrs attrs = {{"num_chunks", int64_t{1}}, {"cap", 1.5}};
  const auto out = kLinearCrossEntropyGrad.infer(in, attrs);
  const auto expected = evaluate_op({&kLinearCrossEntropyGrad, in, out, &attrs}, inputs);
  std::vector<Tensor> results;
  for (const Tensor& each : expected) results.emplace_back(each.size(), 7.0);
  linear_cross_entropy_reference({inputs, results, in, out, attrs}, backwards);
  EXPECT_EQ(results, expected);
  // Each of the two chunks: its tokens, and panels of 64 columns of logits, dh and dw.
  EXPECT_EQ(num_parts, tokens + 2 * (3 + 1 + 1));
}

}  // namespace
}  // namespace rhea::ops
