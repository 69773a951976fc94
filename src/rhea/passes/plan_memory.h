// Places values of known lifetimes in one arena.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace rhea::passes {

// Bytes that must exist from step `first` to step `last`, both included.
struct Lifetime {
  int32_t first = 0;
  int32_t last = 0;
  int64_t bytes = 0;
};

struct MemoryLayout {
  std::vector<int64_t> offsets;  // one per lifetime, multiples of 64
  int64_t total = 0;
  int64_t lower_bound = 0;  // largest sum of bytes alive in one step: no layout can be smaller
};

// Offsets such that lifetimes that share a step never share bytes. The smallest of several
// heuristics; O(n log n) above a few thousand lifetimes.
MemoryLayout plan_memory(std::span<const Lifetime> lifetimes);

}  // namespace rhea::passes
