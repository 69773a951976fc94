// The kernel of the rows that only move elements: every result element is one operand element at
// strides, or zero.
#pragma once
#include <cstdint>
#include <vector>

#include "rhea/ir/cpu_kernel.h"

namespace rhea::ops {

// How the result's dims walk the operand.
struct StridedSource {
  std::vector<int64_t> strides;  // elements of the operand per step of each result dim
  int64_t offset = 0;            // element of the operand at the result's origin
  // Part of result index and offset that steps over rows (dim 0) of the operand: where the operand
  // is strided, a row is Buffer::row_stride elements.
  int row_dim = -1;        // result dim that walks operand dim 0; -1: none
  int64_t row_offset = 0;  // rows to skip at the origin
};

// Copies the operand into the contiguous result; `source` as above with strides of a contiguous
// operand.
ir::KernelPlan strided_copy_plan(const ir::OpInstance& op, StridedSource source);
// The same bytes in the same order: reshape.
ir::KernelPlan flat_copy_plan(const ir::OpInstance& op);

}  // namespace rhea::ops
