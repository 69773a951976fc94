// Initial values of parameters, keyed by seed, FQN and element index.
#pragma once
#include <cstdint>
#include <string_view>

#include "rhea/base/cpu_features.h"
#include "rhea/base/dtype.h"
#include "rhea/base/thread_pool.h"
#include "rhea/nn/init.h"

namespace rhea::nn {

// Fills elements [0, count) of the parameter `fqn`. Element i is a function of (seed, fqn, i), so
// any part of a tensor, on any rank, with any number of threads and any instruction set, gets the
// same bits. The rule: with block = i / 64, word = i % 64 / 16 and lane = i % 16, element i is made
// from two words of philox(rng_key(seed, fqn), 16 * block + lane, attempt): 0 and 1 for words 0 and
// 1, 2 and 3 for the others, by Box-Muller in f32 (cosine in the even word, sine in the odd one).
// A truncated value is the one of the first attempt that lies within the cut. A uniform element i
// is bound * (w * 2^-23 - 1) with w the upper 24 bits of word i % 4 of philox(key, i / 4).
void initialise(void* data, DType dtype, int64_t count, const Init& init, uint64_t seed,
                std::string_view fqn, ThreadPool& pool, Isa isa = active_isa());

}  // namespace rhea::nn
