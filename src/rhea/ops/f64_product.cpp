#include "rhea/ops/f64_product.h"

#include <algorithm>
#include <vector>

#include "rhea/base/error.h"

namespace rhea::ops {
namespace {

constexpr int64_t kRows = 2, kColumns = 8;    // of c in registers
constexpr int64_t kDepth = 256, kPanel = 64;  // of b in the first cache
constexpr int64_t kBlockRows = 1024;          // of c that read b packed once

// rows x kColumns elements of c from rows of packed a and b: a [k][kRows], b [k][kColumns].
void add_tile(int64_t k, const double* a, const double* b, double (&c)[kRows][kColumns]) {
  for (int64_t p = 0; p < k; ++p)
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < kColumns; ++j) c[i][j] += a[p * kRows + i] * b[p * kColumns + j];
}

// [begin, begin + size) of each of k rows, filled up to `width` by zeros.
void pack(F64Matrix x, int64_t k, int64_t begin, int64_t size, int64_t width, double* to) {
  for (int64_t p = 0; p < k; ++p)
    for (int64_t j = 0; j < width; ++j)
      to[p * width + j] = j < size ? x.data[p * x.row + (begin + j) * x.column] : 0;
}

// c += a b for a panel of at most kPanel columns of c, whose rows are `c_row` apart.
void add_panel(int64_t m, int64_t n, int64_t k, F64Matrix a, F64Matrix b, double* c,
               int64_t c_row) {
  std::vector<double> a_pack(static_cast<size_t>(kDepth * kRows)),
      b_pack(static_cast<size_t>(kDepth * kPanel));
  for (int64_t k0 = 0; k0 < k; k0 += kDepth) {
    const int64_t depth = std::min(kDepth, k - k0);
    const F64Matrix a_block{a.data + k0 * a.column, a.row, a.column};
    const F64Matrix b_block{b.data + k0 * b.row, b.row, b.column};
    for (int64_t j0 = 0; j0 < n; j0 += kColumns)
      pack(b_block, depth, j0, std::min(kColumns, n - j0), kColumns, b_pack.data() + j0 * depth);
    for (int64_t i0 = 0; i0 < m; i0 += kRows) {
      const int64_t rows = std::min(kRows, m - i0);
      pack(a_block.transposed(), depth, i0, rows, kRows, a_pack.data());
      for (int64_t j0 = 0; j0 < n; j0 += kColumns) {
        const int64_t columns = std::min(kColumns, n - j0);
        double tile[kRows][kColumns] = {};
        for (int64_t i = 0; i < rows; ++i) std::copy_n(c + (i0 + i) * c_row + j0, columns, tile[i]);
        add_tile(depth, a_pack.data(), b_pack.data() + j0 * depth, tile);
        for (int64_t i = 0; i < rows; ++i) std::copy_n(tile[i], columns, c + (i0 + i) * c_row + j0);
      }
    }
  }
}

}  // namespace

void add_f64_product(int64_t m, int64_t n, int64_t k, F64Matrix a, F64Matrix b, double* c,
                     const ForEach& for_each) {
  const int64_t panels = div_up(n, kPanel);
  for_each(panels * div_up(m, kBlockRows), [&](int64_t item) {
    const int64_t i0 = item / panels * kBlockRows, j0 = item % panels * kPanel;
    add_panel(std::min(kBlockRows, m - i0), std::min(kPanel, n - j0), k,
              {a.data + i0 * a.row, a.row, a.column}, {b.data + j0 * b.column, b.row, b.column},
              c + i0 * n + j0, n);
  });
}

}  // namespace rhea::ops
