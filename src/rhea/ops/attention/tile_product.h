// The products of the tiled attention kernels. Blocks are 4 rows x 4 vectors on AVX-512: 16
// accumulators hide a latency of 6 cycles at 2 per cycle, and short blocks let the out-of-order
// window run the exponentials of one block under the products of the next. Larger blocks (6 x 4,
// 12 x 2) were measured 5-15 points slower.
#pragma once
#include "rhea/ops/attention/tile_pack.h"

namespace rhea::RHEA_ISA_NAMESPACE {

// c + a b over the kPairs values of each dword.
template <class E>
RHEA_INLINE fvec multiply_add(fvec a, fvec b, fvec c) {
#if RHEA_ISA == 3
  if constexpr (Packing<E>::kPairs == 2) return dot_bf16(a, b, c);
#endif
  return vec_fma(a, b, c);
}

// c[i][j] += sum over steps s of a[i * a_row + s * a_step] * b[s * b_step + j]
template <class E, int kRows, int kVecs>
RHEA_INLINE void accumulate(fvec (&c)[kRows][kVecs], const float* a, int64_t a_row, int64_t a_step,
                            const float* b, int64_t b_step, int64_t steps) {
#pragma GCC unroll 2
  for (int64_t s = 0; s < steps; ++s, a += a_step, b += b_step) {
    fvec bv[kVecs];
    // Without in_register GCC 12 loads b again for each row.
    RHEA_UNROLL for (int j = 0; j < kVecs; ++j) bv[j] = in_register(vec_load(b + j * kVec));
    RHEA_UNROLL for (int i = 0; i < kRows; ++i) {
      const fvec av = vec_of(a[i * a_row]);
      RHEA_UNROLL for (int j = 0; j < kVecs; ++j) c[i][j] = multiply_add<E>(av, bv[j], c[i][j]);
    }
  }
}

// The same into memory: c is [kRows][kVecs * kVec] with rows c_row apart. The strides of a are
// constants, so that its addresses are immediates.
template <class E, int kRows, int kVecs, int kARow, int kAStep>
__attribute__((noinline)) static void add_product(float* c, int64_t c_row, const float* a,
                                                  const float* b, int64_t b_step, int64_t steps) {
  fvec r[kRows][kVecs];
  RHEA_UNROLL for (int i = 0; i < kRows; ++i) RHEA_UNROLL for (int j = 0; j < kVecs; ++j) r[i][j] =
      vec_load(c + i * c_row + j * kVec);
  accumulate<E>(r, a, kARow, kAStep, b, b_step, steps);
  RHEA_UNROLL for (int i = 0; i < kRows; ++i) RHEA_UNROLL for (int j = 0; j < kVecs; ++j)
      vec_store(c + i * c_row + j * kVec, r[i][j]);
}

// f(column, number of columns / 16, rows per block) over `columns` in chunks; the constants arrive
// as types. Few columns get tall blocks, else there are too few accumulators.
template <int kChunk, int kRows>
struct ColumnChunk {
  static constexpr int kVectors = kChunk * 16 / kVec, kBlockRows = kRows;
};
template <class F>
RHEA_INLINE void for_column_chunks(int64_t columns, F&& f) {
#if RHEA_ISA >= 2
  int64_t c = 0;
  for (; c + 64 <= columns; c += 64) f(c, ColumnChunk<4, 4>{});
  if (columns - c == 48) f(c, ColumnChunk<3, 4>{});
  if (columns - c == 32) f(c, ColumnChunk<2, 8>{});
  if (columns - c == 16) f(c, ColumnChunk<1, 16>{});
#elif RHEA_ISA == 1
  for (int64_t c = 0; c < columns; c += 16) f(c, ColumnChunk<1, 4>{});
#else
  for (int64_t c = 0; c < columns; c += 16) f(c, ColumnChunk<1, 2>{});
#endif
}

// A tile of scores: 4 queries x kKeys keys (64, or 32 at the diagonal).
//   out[4][64] = init[row] + a b,   a rows of `dwords`, b a panel
// What follows an earlier product (exponentials, masks, conversions) runs as step(0..3) between the
// quarters of this one: left to the out-of-order window, its 200 dependent instructions would fill
// the schedulers and stop the next product.
template <class E, int kKeys, class F>
RHEA_INLINE void score_tile(float* out, const float* a, const float* b, const float* init,
                            int64_t dwords, F&& step) {
#if RHEA_ISA >= 2
  fvec s[4][kKeys / kVec];
  RHEA_UNROLL for (int r = 0; r < 4; ++r) RHEA_UNROLL for (int x = 0; x < kKeys / kVec; ++x)
      s[r][x] = init ? vec_of(init[r]) : fvec{};
  const int64_t quarter = dwords / 4;
  RHEA_UNROLL for (int n = 0; n < 4; ++n) {
    accumulate<E>(s, a + n * quarter, dwords, 1, b + n * quarter * ops::kTilePanel, ops::kTilePanel,
                  quarter);
    step(n);
  }
  RHEA_UNROLL for (int r = 0; r < 4; ++r) RHEA_UNROLL for (int x = 0; x < kKeys / kVec; ++x)
      vec_store(out + r * ops::kTilePanel + x * kVec, s[r][x]);
#else
  // Too few registers to keep the tile: finish the earlier one, then two vectors at a time.
  for (int n = 0; n < 4; ++n) step(n);
  for (int x = 0; x < kKeys; x += 2 * kVec) {
    fvec s[4][2];
    RHEA_UNROLL for (int r = 0; r < 4; ++r) RHEA_UNROLL for (int j = 0; j < 2; ++j) s[r][j] =
        init ? vec_of(init[r]) : fvec{};
    accumulate<E>(s, a, dwords, 1, b + x, ops::kTilePanel, dwords);
    RHEA_UNROLL for (int r = 0; r < 4; ++r) RHEA_UNROLL for (int j = 0; j < 2; ++j)
        vec_store(out + r * ops::kTilePanel + x + j * kVec, s[r][j]);
  }
#endif
}

// 2 kVec neighbours of a row, as dwords of a row operand.
template <class E>
RHEA_INLINE void put_row(float* d, fvec a, fvec b) {
#if RHEA_ISA == 3
  if constexpr (Packing<E>::kPairs == 2) {
    vec_store(d, (fvec)_mm512_cvtne2ps_pbh((__m512)b, (__m512)a));
    return;
  }
#endif
  vec_store(d, a);
  vec_store(d + kVec, b);
}
// The same kVec keys of two queries, as a pair operand whose rows are `d_row` apart.
template <class E>
RHEA_INLINE void put_pair(float* d, fvec query0, fvec query1, int64_t d_row) {
#if RHEA_ISA == 3
  if constexpr (Packing<E>::kPairs == 2) {
    vec_store(d, interleave_bf16(query0, query1));
    return;
  }
#endif
  vec_store(d, query0);
  vec_store(d + d_row, query1);
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
