// A keyed permutation of any size.
#include "rhea/components/data/epoch_order.h"

#include <string>

#include "rhea/base/rng.h"

namespace rhea::data {

// A Feistel network permutes the 2^(2k) numbers from the smallest such power up; numbers that land
// outside [0, count) are sent through it again until they land inside ("cycle walking"), which
// again is a permutation. At most 4 tries on average.
int64_t permute(int64_t index, int64_t count, uint64_t seed, int64_t epoch) {
  if (count <= 1) return index;
  constexpr int kRounds = 6;
  int half_bits = 1;
  while ((int64_t{1} << (2 * half_bits)) < count) ++half_bits;
  const uint64_t mask = (uint64_t{1} << half_bits) - 1;
  const RngKey key = rng_key(seed, "dataloader.epoch." + std::to_string(epoch));
  uint64_t value = static_cast<uint64_t>(index);
  do {
    uint64_t left = value >> half_bits;
    uint64_t right = value & mask;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t mixed = left ^ (philox(key, right, round)[0] & mask);
      left = right;
      right = mixed;
    }
    value = (left << half_bits) | right;
  } while (value >= static_cast<uint64_t>(count));
  return static_cast<int64_t>(value);
}

}  // namespace rhea::data
