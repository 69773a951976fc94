// Operands of the tiled products.
//
// Everything is counted in dwords: a dword holds kPairs neighbours of the summed dimension (bf16
// dot products: 2, f32: 1). A product C[r][c] += A[r][k] B[k][c] broadcasts dwords of A and reads
// vectors of B, so A may lie in any order (only strides change), while B needs its dwords of one k
// side by side. One head is therefore copied as
//   rows   [t][H / kPairs]          compact: in the model a head's rows lie kilobytes apart and
//                                   would share a few L1 sets
//   panels [t / 64][H / kPairs][64] transposed; B when H is summed (k for scores, v for dP)
//   pairs  [t / kPairs][H]          B when tokens are summed (v for o, k for dq, q for dk, do for
//   dv)
// Columns past the width and tokens past the end are zero.
#pragma once
#include "rhea/ops/attention/tile_args.h"
#include "rhea/ops/attention/tile_vector.h"

namespace rhea::RHEA_ISA_NAMESPACE {

// How the elements E of an operand take part in products.
template <class E>
struct Packing {
#if RHEA_ISA == 3
  static constexpr int kPairs = sizeof(E) == 2 ? 2 : 1;
#else
  static constexpr int kPairs = 1;  // 16-bit elements become f32
#endif
};

// One head of an operand: element (token, i), `width` of them real and `columns` after padding.
template <class E>
struct HeadView {
  const E* data;
  int64_t stride, width, columns;
  HeadView(const ops::TileOperand& x, int64_t first_token, int64_t head, int64_t head_width)
      : data(static_cast<const E*>(x.data) + first_token * x.stride + head * head_width),
        stride(x.stride),
        width(head_width),
        columns((head_width + ops::kTileColumns - 1) / ops::kTileColumns * ops::kTileColumns) {}
  const E* at(int64_t token) const { return data + token * stride; }
  int64_t dwords() const { return columns / Packing<E>::kPairs; }
};

#if RHEA_ISA == 3
// Two rows of 16 floats as 16 dwords (row 0, row 1).
RHEA_INLINE fvec interleave_bf16(fvec row0, fvec row1) {
  alignas(64) static constexpr uint16_t kOrder[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                      21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                      11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return (fvec)_mm512_permutexvar_epi16(_mm512_load_si512(in_memory(kOrder)),
                                        (__m512i)_mm512_cvtne2ps_pbh((__m512)row1, (__m512)row0));
}
#endif

// kVec dwords of a row from dword `at` on, of which some may lie past the width.
template <class E>
RHEA_INLINE fvec load_dwords(const HeadView<E>& x, int64_t token, int64_t at) {
  const int64_t left = x.width - at * Packing<E>::kPairs;
  if (left <= 0) return fvec{};
#if RHEA_ISA == 3
  if constexpr (Packing<E>::kPairs == 2) {
    const E* p = x.at(token) + 2 * at;
    return left >= 32 ? (fvec)_mm512_loadu_si512(p)
                      : (fvec)_mm512_maskz_loadu_epi16((1u << left) - 1u, p);
  }
#endif
  return row_load(x.at(token) + at, left);
}

// Tokens [first, first + count), zeros from `end` on.
template <class E>
static void pack_rows(float* d, const HeadView<E>& x, int64_t first, int64_t count, int64_t end) {
  const int64_t dwords = x.dwords();
  for (int64_t t = first; t < first + count; ++t, d += dwords)
    for (int64_t s = 0; s < dwords; s += kVec)
      row_store(d + s, t < end ? load_dwords(x, t, s) : fvec{}, dwords - s);
}

// Tokens [first, end) rounded up to whole panels; first is a multiple of 64.
template <class E>
static void pack_panels(float* d, const HeadView<E>& x, int64_t first, int64_t end) {
  const int64_t dwords = x.dwords();
  for (int64_t t = first; t < end; t += ops::kTilePanel, d += dwords * ops::kTilePanel) {
#if RHEA_ISA >= 2
    for (int64_t part = 0; part < ops::kTilePanel; part += 16)
      for (int64_t s = 0; s < dwords; s += 16) {
        __m512i r[16];
        for (int i = 0; i < 16; ++i) {
          const int64_t token = t + part + i;
          r[i] = token < end ? (__m512i)load_dwords(x, token, s) : _mm512_setzero_si512();
        }
        transpose16(r);
        const int64_t count = dwords - s < 16 ? dwords - s : 16;
        for (int64_t i = 0; i < count; ++i)
          _mm512_storeu_si512(d + (s + i) * ops::kTilePanel + part, r[i]);
      }
#else
    for (int64_t i = 0; i < ops::kTilePanel; ++i)
      for (int64_t s = 0; s < dwords; ++s)
        d[s * ops::kTilePanel + i] = t + i < end && s < x.width ? element(x.at(t + i) + s) : 0.0f;
#endif
  }
}

#if RHEA_ISA == 3
// 16 dwords (element of row 0, element of row 1).
RHEA_INLINE fvec interleave_rows(u16x16 row0, u16x16 row1) {
  return (fvec)(__builtin_convertvector(row0, u32x16) | __builtin_convertvector(row1, u32x16)
                                                            << 16);
}
#endif

// Tokens [first, end) rounded up to 16; first is even.
template <class E>
static void pack_pairs(float* d, const HeadView<E>& x, int64_t first, int64_t end) {
  const int64_t last = first + (end - first + 15) / 16 * 16;
  for (int64_t t = first; t < last; t += Packing<E>::kPairs, d += x.columns)
    for (int64_t c = 0; c < x.columns; c += kVec) {
      const int64_t left = x.width - c;
#if RHEA_ISA == 3
      if constexpr (Packing<E>::kPairs == 2) {
        const E* p = x.at(t) + c;
        const bool whole = left >= kVec && t + 1 < end;
        const u16x16 row0 = whole ? load_u16(p) : load_u16_n(p, t < end ? left : 0);
        const u16x16 row1 =
            whole ? load_u16(p + x.stride) : load_u16_n(p + x.stride, t + 1 < end ? left : 0);
        vec_store(d + c, interleave_rows(row0, row1));
        continue;
      }
#endif
      vec_store(d + c, t < end && left > 0 ? row_load(x.at(t) + c, left) : fvec{});
    }
}

// Both forms of tokens [0, end) rounded up to 16, from one look at the rows. With one value per
// dword they are the same, and `pairs` is not written.
template <class E>
static void pack_rows_and_pairs(float* rows, [[maybe_unused]] float* pairs, const HeadView<E>& x,
                                int64_t end) {
  const int64_t last = (end + 15) / 16 * 16;
#if RHEA_ISA == 3
  if constexpr (Packing<E>::kPairs == 2) {
    alignas(64) static constexpr uint16_t kOrder[2][32] = {
        {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
         8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47},
        {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
         24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63}};
    const int64_t dwords = x.dwords();
    const __m512i low = _mm512_load_si512(kOrder[0]), high = _mm512_load_si512(kOrder[1]);
    for (int64_t t = 0; t < last; t += 2, rows += 2 * dwords, pairs += x.columns)
      for (int64_t s = 0; s < dwords; s += 16) {
        const fvec a = t < end ? load_dwords(x, t, s) : fvec{};
        const fvec b = t + 1 < end ? load_dwords(x, t + 1, s) : fvec{};
        row_store(rows + s, a, dwords - s);
        row_store(rows + dwords + s, b, dwords - s);
        vec_store(pairs + 2 * s, (fvec)_mm512_permutex2var_epi16((__m512i)a, low, (__m512i)b));
        if (dwords - s > 8)
          vec_store(pairs + 2 * s + 16,
                    (fvec)_mm512_permutex2var_epi16((__m512i)a, high, (__m512i)b));
      }
    return;
  }
#endif
  pack_rows(rows, x, 0, last, end);
}

// Lane i = x row . y row of token t + i; zero from `end` on.
template <class E>
RHEA_INLINE fvec row_dots(const HeadView<E>& x, const HeadView<E>& y, int64_t t, int64_t end) {
  fvec r[kVec];
  for (int i = 0; i < kVec; ++i) {
    r[i] = fvec{};
    if (t + i >= end) continue;
    for (int64_t s = 0; s < x.dwords(); s += kVec) {
      const fvec a = load_dwords(x, t + i, s), b = load_dwords(y, t + i, s);
#if RHEA_ISA == 3
      if constexpr (Packing<E>::kPairs == 2) {
        r[i] = dot_bf16(a, b, r[i]);
        continue;
      }
#endif
      r[i] = vec_fma(a, b, r[i]);
    }
  }
  return row_sums(r);
}

// Writes columns of f32 sums, times `factor`, as a row of the model.
template <class E>
RHEA_INLINE void unpack_row(E* out, const float* sums, int64_t width, fvec factor) {
  for (int64_t c = 0; c < width; c += kVec)
    row_store(out + c, vec_load(sums + c) * factor, width - c);
}

// Rows of the next heads, operands and results, fetched a few per tile: they lie 1-4 KB apart,
// which the hardware does not foresee.
struct Ahead {
  static constexpr int kMax = 8;
  const char* at[kMax] = {};
  int64_t stride[kMax] = {}, bytes[kMax] = {};
  int num = 0;
  int64_t left = 0, per_tile = 1;

  explicit Ahead(int64_t rows) : left(rows), per_tile(511 / rows + 1) {}
  template <class E>
  void add(const HeadView<E>& x) {
    at[num] = reinterpret_cast<const char*>(x.data);
    stride[num] = x.stride * static_cast<int64_t>(sizeof(E));
    bytes[num++] = x.width * static_cast<int64_t>(sizeof(E));
  }
  __attribute__((always_inline)) void step() {
    for (int64_t k = per_tile < left ? per_tile : left; k > 0; --k, --left)
      for (int i = 0; i < num; ++i) {
        for (int64_t byte = 0; byte < bytes[i]; byte += 64) __builtin_prefetch(at[i] + byte, 0, 2);
        at[i] += stride[i];
      }
  }
};

}  // namespace rhea::RHEA_ISA_NAMESPACE
