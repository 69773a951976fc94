// Places values of known lifetimes in one arena.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace rhea::passes {

// Steps from `first` to `last`, both included.
struct StepRange {
  int32_t first = 0;
  int32_t last = 0;
};

// Bytes that must exist from step `first` to step `last`, both included, and again during each of
// the `later` ranges, which come after `last` and ascend. In between others may have them.
struct Lifetime {
  int32_t first = 0;
  int32_t last = 0;
  int64_t bytes = 0;
  std::vector<StepRange> later;
};

struct MemoryLayout {
  std::vector<int64_t> offsets;  // one per lifetime, multiples of 64
  int64_t total = 0;
  int64_t lower_bound = 0;  // largest sum of bytes alive in one step: no layout can be smaller
};

bool alive(const Lifetime& life, int32_t step);
// The lower bound alone, and a step in which so many bytes are alive.
int64_t largest_sum_alive(std::span<const Lifetime> lifetimes);
int32_t fullest_step(std::span<const Lifetime> lifetimes);

// Offsets such that lifetimes that share a step never share bytes. The smallest of several
// heuristics; O(n log n) above ten thousand lifetimes, which then keep their bytes between ranges.
MemoryLayout plan_memory(std::span<const Lifetime> lifetimes);

}  // namespace rhea::passes
