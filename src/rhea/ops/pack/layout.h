// Where the elements of a packed matrix lie (rhea/ir/type.h says what the layouts are for).
#pragma once
#include "rhea/ir/type.h"

namespace rhea::ops {

// Width of a panel, and how many neighbours of the reduction share a 32-bit word.
inline constexpr int64_t kPanel = 64;
constexpr int64_t panel_pair(DType dtype) { return dtype_size(dtype) == 2 ? 2 : 1; }
// Length of the reduction with its padding.
constexpr int64_t panel_depth(int64_t k, DType dtype) {
  const int64_t unit = 16 * panel_pair(dtype);
  return (k + unit - 1) / unit * unit;
}
// Element (k, n) of the right operand, k along the reduction.
constexpr int64_t panel_index(int64_t k, int64_t n, int64_t depth, int64_t pair) {
  return ((n / kPanel * (depth / pair) + k / pair) * kPanel + n % kPanel) * pair + k % pair;
}
// The matrix that a packed tensor holds: of three dims, the leading two are rows.
inline ir::Type packed_matrix(const ir::Type& type) {
  if (type.rank() != 3) return type;
  return {type.dtype, {type.shape[0] * type.shape[1], type.shape[2]}, type.layout};
}
// Offset, in elements, of entry (row, column) of a matrix of any layout.
inline int64_t element_offset(const ir::Type& type, int64_t row, int64_t column) {
  if (type.layout == ir::Layout::row_major) return row * type.shape[1] + column;
  const bool nk = type.layout == ir::Layout::panels_nk;
  const int64_t depth = panel_depth(type.shape[nk ? 1 : 0], type.dtype);
  return panel_index(nk ? column : row, nk ? row : column, depth, panel_pair(type.dtype));
}

}  // namespace rhea::ops
