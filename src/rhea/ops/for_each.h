// Work in parts that do not depend on each other.
#pragma once
#include <cstdint>
#include <functional>

namespace rhea::ops {

// Calls f(i) for every i of [0, count), on the threads that it has, and returns when all are done.
using ForEach = std::function<void(int64_t count, const std::function<void(int64_t)>& f)>;

// One after the other.
inline void in_order(int64_t count, const std::function<void(int64_t)>& f) {
  for (int64_t i = 0; i < count; ++i) f(i);
}

}  // namespace rhea::ops
