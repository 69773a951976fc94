// From scores to probabilities: scaling, soft cap, visibility.
#pragma once
#include "rhea/ops/attention/tile_product.h"

namespace rhea::RHEA_ISA_NAMESPACE {

RHEA_INLINE int64_t round_up_to(int64_t x, int64_t multiple) {
  return (x + multiple - 1) / multiple * multiple;
}
template <class T>
RHEA_INLINE T smaller(T a, T b) {
  return a < b ? a : b;
}
template <class T>
RHEA_INLINE T larger(T a, T b) {
  return a > b ? a : b;
}

RHEA_INLINE void fill_zero(float* p, int64_t count) {
  __builtin_memset(p, 0, static_cast<uint64_t>(count) * sizeof(float));
}

// Cuts arrays out of a thread's scratch; with no memory it only counts. The odd gap keeps arrays
// off each other's L1 sets.
struct Carver {
  float* base;
  int64_t used = 0;
  float* take(int64_t floats) {
    float* p = base ? base + used : nullptr;
    used += round_up_to(floats, 16) + 80;
    return p;
  }
};

// The sink logit of a head, in base 2.
RHEA_INLINE float sink_log2(const ops::AttentionTiles& tiles, int64_t n) {
  return kLog2E * (tiles.sink_is_bf16 ? element(static_cast<const uint16_t*>(tiles.sink) + n)
                                      : static_cast<const float*>(tiles.sink)[n]);
}

// Any lane at or above the limit, or NaN.
RHEA_INLINE bool reaches(fvec x, float limit) {
#if RHEA_ISA >= 2
  return _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(limit), _CMP_NLT_UQ) != 0;
#else
  bool any = false;
  for (int i = 0; i < kVec; ++i) any |= !(x[i] < limit);
  return any;
#endif
}

// Scores in base 2: u = log2(e) * (cap tanh(scale x / cap), or scale x without a cap).
template <bool kCap>
struct Scores {
  float factor, cap_log2, inner;
  Scores(float scale, float cap)
      : factor(scale * kLog2E), cap_log2(cap * kLog2E), inner(kCap ? scale / cap : 0.0f) {}
  // u - reference for N products x in step; with a cap `slope` gets 1 - tanh^2.
  template <int N>
  __attribute__((always_inline)) void shift(fvec (&x)[N], const fvec (&minus)[N],
                                            fvec (&slope)[N]) const {
    if constexpr (kCap) {
      RHEA_UNROLL for (int i = 0; i < N; ++i) {
        const fvec t = vec_tanh(x[i] * inner);
        slope[i] = 1.0f - t * t;
        x[i] = vec_fma(t, vec_of(cap_log2), minus[i]);
      }
    } else {
      const float* f = in_memory(&factor);
      RHEA_UNROLL for (int i = 0; i < N; ++i) x[i] = vec_fma(x[i], vec_of(*f), minus[i]);
    }
  }
  __attribute__((always_inline)) fvec operator()(fvec x) const {
    fvec u[1] = {x}, slope[1];
    const fvec zero[1] = {fvec{}};
    shift(u, zero, slope);
    return u[0];
  }
};

// First visible key of each query of a row (documents restart where a position is 0), for queries
// [0, end). Queries from `end` up to `padded` see nothing.
static void fill_first_keys(const ops::AttentionTiles& tiles, int64_t row, int64_t end,
                            int64_t padded, int32_t* first) {
  const int32_t* positions = tiles.positions + row * tiles.row;
  int32_t start = 0;
  for (int64_t t = 0; t < end; ++t) {
    if (tiles.documents && positions[t] == 0) start = static_cast<int32_t>(t);
    const int32_t window =
        tiles.window > 0 && t >= tiles.window ? static_cast<int32_t>(t - tiles.window + 1) : 0;
    first[t] = start > window ? start : window;
  }
  for (int64_t t = end; t < padded; ++t) first[t] = INT32_MAX;
}

// What tokens [begin, end) of a row add to their scores as keys of head n, in base 2; queries
// subtract their own. Tokens from `end` up to `padded` are masked: 0.
static void fill_bias(const ops::AttentionTiles& tiles, int64_t row, int64_t n, int64_t begin,
                      int64_t end, int64_t padded, float* bias) {
  const int32_t* positions = tiles.positions + row * tiles.row;
  const float* table = tiles.bias + n * tiles.bias_row;
  for (int64_t t = begin; t < end; ++t) bias[t] = kLog2E * table[positions[t]];
  for (int64_t t = end; t < padded; ++t) bias[t] = 0.0f;
}

// Lanes whose key, from k on, query q sees.
RHEA_INLINE ivec visible(int64_t k, int64_t q, int32_t first) {
  const ivec key = vec_index() + static_cast<int32_t>(k);
  return (key <= static_cast<int32_t>(q)) & (key >= first);
}

// A block of queries [q0, q0 + num_q) against keys [k0, k0 + num_k); q0 and k0 are multiples of 16
// and 64. Tiles right of the diagonal and left of what a group of 16 queries sees are dead: neither
// computed nor read. All products respect the same borders.
struct Block {
  int64_t q0, num_q, k0, num_k;
  const int32_t* first;  // of the row's queries

  // Keys of the block from which on the 16 queries around i have live tiles.
  __attribute__((always_inline)) int64_t begin_key(int64_t i) const {
    const int64_t left = static_cast<int64_t>(first[q0 + i / 16 * 16]) - k0;
    return left <= 0 ? 0 : left / ops::kTilePanel * ops::kTilePanel;
  }
  // End of the keys that `rows` queries from i on see.
  __attribute__((always_inline)) int64_t end_key(int64_t i, int64_t rows) const {
    const int64_t n = q0 + i + rows - k0;
    return n < num_k ? n : num_k;
  }
  // First query of the block that sees key j.
  __attribute__((always_inline)) int64_t begin_query(int64_t j) const {
    return k0 + j > q0 ? k0 + j - q0 : 0;
  }
  // End of the queries with live tiles at key j.
  int64_t end_query(int64_t j) const {
    const int64_t panel_end = k0 + (j / ops::kTilePanel + 1) * ops::kTilePanel;
    int64_t i = num_q;
    while (i > 0 && first[q0 + (i - 1) / 16 * 16] >= panel_end) i = (i - 1) / 16 * 16;
    return i;
  }
};

// Queries [i, i + 4) and keys [j, j + keys) of a block.
struct Tile {
  int64_t i = 0, j = 0;
  int keys = 0;  // 0 (none yet), 32 at the diagonal, or 64
  bool masked = false;
};

// A tile between begin_query(j) and end_query(j).
RHEA_INLINE Tile tile_at(const Block& block, int64_t i, int64_t j) {
  const int64_t q = block.q0 + i, k = block.k0 + j;
  const int keys = q + 3 < k + 32 ? 32 : 64;
  return {i, j, keys, k + keys - 1 > q || block.first[q + 3] > k};
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
