// How a parameter starts: a distribution, keyed by seed, FQN and element index.
#pragma once
#include <cstdint>
#include <string_view>

#include "rhea/base/dtype.h"
#include "rhea/base/thread_pool.h"

namespace rhea::nn {

struct Init {
  enum class Kind : uint8_t { zeros, ones, normal, truncated_normal };
  Kind kind = Kind::zeros;
  double std = 0;
  double cut = 0;  // truncated_normal: absolute bound on both sides

  static Init zeros() { return {}; }
  static Init ones() { return {Kind::ones, 0, 0}; }
  static Init normal(double std) { return {Kind::normal, std, 0}; }
  static Init truncated_normal(double std, double cut) {
    return {Kind::truncated_normal, std, cut};
  }
  bool operator==(const Init&) const = default;
};

// Fills elements [0, count) of the parameter `fqn`. Element i is a function of (seed, fqn, i), so
// any part of a tensor, on any rank and with any number of threads, gets the same bits.
void initialise(void* data, DType dtype, int64_t count, const Init& init, uint64_t seed,
                std::string_view fqn, ThreadPool& pool);

}  // namespace rhea::nn
