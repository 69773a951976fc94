// How many tokens a chunk of the head has.
#include "rhea/ops/loss/loss.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace rhea::ops
