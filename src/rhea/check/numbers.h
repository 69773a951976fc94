// How far apart two computations of one tensor are.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "rhea/base/dtype.h"
#include "rhea/ops/evaluate.h"

namespace rhea::check {

using ops::Tensor;

struct Difference {
  double max_abs = 0;
  double max_rel = 0;  // max_abs as a share of the largest finite element of `of`
};
// Of `x` from `of`. A NaN against a number, or infinities that differ, are infinitely far apart;
// NaN against NaN is no difference.
Difference difference(const Tensor& x, const Tensor& of);

// Elements by their distance in units in the last place of the dtype.
struct UlpHistogram {
  static constexpr std::array<int64_t, 5> kLimits = {0, 1, 2, 4, 16};
  std::array<int64_t, kLimits.size() + 1> counts = {};  // the last: more than 16, or NaN

  void add(const Tensor& x, const Tensor& of, DType dtype);
  // "0: 99.8 %, 1: 0.2 %"; empty where nothing was counted.
  std::string text() const;
};

}  // namespace rhea::check
