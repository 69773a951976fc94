// Rows of a norm kernel in groups of 16, so that what is formed once per row (square root,
// division) is formed by vectors. For kernel files (rules in rhea/ops/simd.h).
#pragma once
#include "rhea/ops/norm/norm_rows.h"
#include "rhea/ops/row_vector.h"

namespace rhea::RHEA_ISA_NAMESPACE {

struct RowGroup {
  int count = 0;
  const char *x[kLanes], *dy[kLanes];
  char* y[kLanes];
};

template <class E, class F>
RHEA_INLINE void for_row_groups(const ops::NormRows& a, F&& f) {
  RowGroup group;
  for (int64_t token = a.begin; token < a.end; ++token)
    for (int64_t row = 0; row < a.per_token; ++row) {
      const int64_t inner = row * a.width;
      group.x[group.count] =
          static_cast<const char*>(a.x) + (token * a.x_stride + inner) * E::kBytes;
      if (a.dy)
        group.dy[group.count] =
            static_cast<const char*>(a.dy) + (token * a.dy_stride + inner) * E::kBytes;
      group.y[group.count] = static_cast<char*>(a.y) + (token * a.y_stride + inner) * E::kBytes;
      if (++group.count < kLanes) continue;
      f(group);
      group.count = 0;
    }
  if (group.count > 0) f(group);
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
