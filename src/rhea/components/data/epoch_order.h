// Order of documents in an epoch: a permutation that is computed element by element, in no memory.
#pragma once
#include <cstdint>

namespace rhea::data {

// Image of `index` under the permutation of [0, count) that belongs to (seed, epoch).
int64_t permute(int64_t index, int64_t count, uint64_t seed, int64_t epoch);

}  // namespace rhea::data
