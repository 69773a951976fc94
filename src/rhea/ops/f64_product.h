// Matrix products in f64 for references: fast enough for the shapes of a run, with the bits of the
// three plain loops.
#pragma once
#include <cstdint>

#include "rhea/ops/for_each.h"

namespace rhea::ops {

// A matrix of any strides, in elements.
struct F64Matrix {
  const double* data;
  int64_t row, column;
  F64Matrix transposed() const { return {data, column, row}; }
};
inline F64Matrix row_major(const double* data, int64_t columns) { return {data, columns, 1}; }

// c[i, j] += a[i, 0] b[0, j], then a[i, 1] b[1, j], ...: in this order, each product and each sum
// rounded. c [m, n] is row-major; its blocks are the items of `for_each`.
void add_f64_product(int64_t m, int64_t n, int64_t k, F64Matrix a, F64Matrix b, double* c,
                     const ForEach& for_each = in_order);

}  // namespace rhea::ops
