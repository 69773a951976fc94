// Counter-based random numbers: a value is a function of (key, index), never of who draws it or in
// which order.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace rhea {

// Key from a seed and a name (the FQN of a parameter, the name of a stream).
struct RngKey {
  uint64_t value = 0;
};
RngKey rng_key(uint64_t seed, std::string_view name);

// Philox4x32-10 (Salmon et al. 2011): four 32-bit words for one 128-bit counter.
std::array<uint32_t, 4> philox(RngKey key, uint64_t counter_low, uint64_t counter_high = 0);

// Uniform in (0, 1), element `index` of the stream.
double rng_uniform(RngKey key, uint64_t index);
// Uniform integer in [0, bound) without modulo bias beyond 2^-64.
uint64_t rng_below(RngKey key, uint64_t index, uint64_t bound);

}  // namespace rhea
