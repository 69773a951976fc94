// Offsets of buffers: no overlap in time and space.
#include "rhea/passes/plan_memory.h"

#include <gtest/gtest.h>

#include <random>

namespace rhea::passes {
namespace {

bool share_a_step(const Lifetime& a, const Lifetime& b) {
  const auto ranges = [](const Lifetime& life) {
    std::vector<StepRange> all = {{life.first, life.last}};
    all.insert(all.end(), life.later.begin(), life.later.end());
    return all;
  };
  for (const StepRange& x : ranges(a)) {
    for (const StepRange& y : ranges(b)) {
      if (x.first <= y.last && y.first <= x.last) return true;
    }
  }
  return false;
}

void expect_disjoint(const std::vector<Lifetime>& lifetimes, const MemoryLayout& layout) {
  ASSERT_EQ(layout.offsets.size(), lifetimes.size());
  for (size_t a = 0; a < lifetimes.size(); ++a) {
    EXPECT_EQ(layout.offsets[a] % 64, 0);
    EXPECT_LE(layout.offsets[a] + lifetimes[a].bytes, layout.total);
    for (size_t b = 0; b < a; ++b) {
      const bool together = share_a_step(lifetimes[a], lifetimes[b]);
      const bool apart = layout.offsets[a] + lifetimes[a].bytes <= layout.offsets[b] ||
                         layout.offsets[b] + lifetimes[b].bytes <= layout.offsets[a];
      EXPECT_TRUE(!together || apart || lifetimes[a].bytes == 0 || lifetimes[b].bytes == 0)
          << a << " and " << b;
    }
  }
}

TEST(PlanMemory, ReusesMemoryOfTheDead) {
  const std::vector<Lifetime> lifetimes = {{0, 1, 100}, {1, 2, 100}, {2, 3, 100}};
  const auto layout = plan_memory(lifetimes);
  expect_disjoint(lifetimes, layout);
  EXPECT_EQ(layout.total, 256);
  EXPECT_EQ(layout.lower_bound, 256);
}

TEST(PlanMemory, BytesServeOthersBetweenTwoRanges) {
  const std::vector<Lifetime> lifetimes = {
      {0, 2, 640, {{8, 9}}}, {3, 7, 640}, {4, 5, 320}, {1, 9, 64}};
  const auto layout = plan_memory(lifetimes);
  expect_disjoint(lifetimes, layout);
  EXPECT_EQ(layout.lower_bound, 640 + 320 + 64);
  EXPECT_EQ(layout.total, layout.lower_bound);
}

TEST(PlanMemory, RandomRangesAreDisjoint) {
  std::mt19937 random(3);
  std::vector<Lifetime> lifetimes;
  for (int i = 0; i < 300; ++i) {
    int32_t step = static_cast<int32_t>(random() % 300);
    const auto range = [&] {
      const int32_t first = step, last = first + static_cast<int32_t>(random() % 20);
      step = last + 2 + static_cast<int32_t>(random() % 40);
      return StepRange{first, last};
    };
    const StepRange once = range();
    Lifetime life{once.first, once.last, static_cast<int64_t>(random() % 5000)};
    for (auto k = random() % 3; k > 0; --k) life.later.push_back(range());
    lifetimes.push_back(life);
  }
  const auto layout = plan_memory(lifetimes);
  expect_disjoint(lifetimes, layout);
  EXPECT_GE(layout.total, layout.lower_bound);
  EXPECT_LE(static_cast<double>(layout.total), 1.25 * static_cast<double>(layout.lower_bound));
}

TEST(PlanMemory, EmptyAndZeroSized) {
  EXPECT_EQ(plan_memory({}).total, 0);
  const std::vector<Lifetime> lifetimes = {{0, 5, 0}, {0, 5, 64}};
  expect_disjoint(lifetimes, plan_memory(lifetimes));
}

TEST(PlanMemory, RandomLifetimesAreDisjointAndTight) {
  std::mt19937 random(1);
  std::vector<Lifetime> lifetimes;
  for (int i = 0; i < 500; ++i) {
    const auto first = static_cast<int32_t>(random() % 400);
    const auto length = static_cast<int32_t>(random() % 8 == 0 ? random() % 300 : random() % 6);
    lifetimes.push_back({first, first + length, static_cast<int64_t>(random() % 5000)});
  }
  const auto layout = plan_memory(lifetimes);
  expect_disjoint(lifetimes, layout);
  EXPECT_LE(static_cast<double>(layout.total), 1.1 * static_cast<double>(layout.lower_bound));
}

// Forward values that live until the backward pass meets them again, with short ones in between:
// the shape of a training step.
TEST(PlanMemory, TwentyThousandLifetimes) {
  std::mt19937 random(2);
  std::vector<Lifetime> lifetimes;
  constexpr int32_t kSteps = 20000;
  for (int32_t s = 0; s < kSteps; ++s) {
    const auto bytes = static_cast<int64_t>(random() % 100000);
    const bool kept = s < kSteps / 2 && s % 3 == 0;
    lifetimes.push_back({s, kept ? kSteps - s : s + 2, bytes});
  }
  const auto layout = plan_memory(lifetimes);
  EXPECT_LE(static_cast<double>(layout.total), 1.1 * static_cast<double>(layout.lower_bound));
}

}  // namespace
}  // namespace rhea::passes
