// Packers of single panels, for kernel files (rules in simd.h). Layouts: rhea/ir/type.h. Words are
// 32 bits: one f32 or two bf16.
#pragma once
#include "rhea/ops/simd.h"

namespace rhea::RHEA_ISA_NAMESPACE {

#if RHEA_ISA >= 2
// Transposes 16 x 16 words.
RHEA_INLINE void transpose_16(__m512i (&r)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0x88);
    t[4 + i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0xdd);
    t[8 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0x88);
    t[12 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88);
    r[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0xdd);
    r[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88);
    r[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xdd);
  }
}
#endif

// Cached: the words are read again soon. Streamed: they go to memory past the caches, which saves
// reading the lines first; each store is a whole line, and finish_stores() ends a stretch of them.
enum class Stores { cached, streamed };
template <Stores kStores>
RHEA_INLINE void put_words(uint32_t* p, u32x16 words) {
#if RHEA_ISA >= 2
  if constexpr (kStores == Stores::streamed)
    return _mm512_stream_si512(reinterpret_cast<__m512i*>(p), bits_as<__m512i>(words));
#endif
  __builtin_memcpy(p, &words, 64);
}
template <Stores kStores>
RHEA_INLINE void finish_stores() {
#if RHEA_ISA >= 2
  if constexpr (kStores == Stores::streamed) _mm_sfence();
#endif
}

// What becomes of the pair of bf16 in a word: it stays a word, or each is widened to an f32, the
// word of a step of its own.
enum class Pairs { kept, widened };
template <int Width, Stores kStores, Pairs kPairs>
RHEA_INLINE void put_step(uint32_t* dst, int64_t s, u32x16 words) {
  if constexpr (kPairs == Pairs::kept) {
    put_words<kStores>(dst + s * Width, words);
  } else {
    put_words<kStores>(dst + 2 * s * Width, words << 16);
    put_words<kStores>(dst + (2 * s + 1) * Width, words & 0xffff0000u);
  }
}

// dst[s][c] = word s of row c for `steps` whole words of `columns` rows, `stride` bytes apart;
// missing columns up to Width are zero.
template <int Width, Stores kStores, Pairs kPairs = Pairs::kept>
RHEA_INLINE void transpose_words(const char* src, int64_t stride, int64_t columns, int64_t steps,
                                 uint32_t* dst) {
#if RHEA_ISA >= 2
  for (int64_t s = 0; s < steps; s += 16) {
    const int64_t count = steps - s < 16 ? steps - s : 16;
    const __mmask16 valid = first_lanes(count);
    for (int c = 0; c < Width; c += 16) {
      __m512i r[16];
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i)
        r[i] = c + i < columns ? _mm512_maskz_loadu_epi32(valid, src + (c + i) * stride + 4 * s)
                               : _mm512_setzero_si512();
      transpose_16(r);
      for (int64_t i = 0; i < count; ++i)
        put_step<Width, kStores, kPairs>(dst + c, s + i, bits_as<u32x16>(r[i]));
    }
  }
#else
  for (int64_t s = 0; s < steps; ++s) {
    for (int64_t c = 0; c < Width; c += 16) {
      u32x16 words = {};
      for (int64_t i = 0; i < 16 && c + i < columns; ++i) {
        uint32_t word;
        __builtin_memcpy(&word, src + (c + i) * stride + 4 * s, 4);
        words[i] = word;
      }
      put_step<Width, kStores, kPairs>(dst + c, s, words);
    }
  }
#endif
}

// Where packed words go: step s of column c lies at s * step + c / 16 * group + c % 16.
struct PackedWords {
  uint32_t* at;
  int64_t step, group;
};

// Rows are far apart, so no hardware prefetcher sees them coming: they are touched some steps
// ahead.
constexpr int64_t kPackAhead = 8;
template <int Width, class Element>
RHEA_INLINE void touch_row(const Element* row) {
  for (int c = 0; c < Width; c += 64 / static_cast<int>(sizeof(Element)))
    __builtin_prefetch(row + c);
}

// Word (s, c) = (row 2s, row 2s+1) at column c, for pairs of bf16 rows; missing columns up to Width
// and a missing last row are zero.
template <int Width, Stores kStores = Stores::cached>
RHEA_INLINE void interleave_rows(const uint16_t* src, int64_t ld, int64_t columns, int64_t rows,
                                 PackedWords dst) {
  int64_t s = 0;
#if RHEA_ISA >= 2
  if (columns >= Width) {
    alignas(64) static constexpr uint16_t kZip[2][32] = {
        {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
         8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47},
        {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
         24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63}};
    const __m512i low = _mm512_load_si512(kZip[0]), high = _mm512_load_si512(kZip[1]);
    for (; 2 * s + 1 < rows; ++s) {
      const uint16_t* first = src + 2 * s * ld;
      if (2 * (s + kPackAhead) + 1 < rows) {
        touch_row<Width>(first + 2 * kPackAhead * ld);
        touch_row<Width>(first + (2 * kPackAhead + 1) * ld);
      }
      uint32_t* to = dst.at + s * dst.step;
#pragma GCC unroll 4
      for (int c = 0; c < Width; c += 32, to += 2 * dst.group) {
        const __m512i a = _mm512_loadu_si512(first + c), b = _mm512_loadu_si512(first + ld + c);
        put_words<kStores>(to, bits_as<u32x16>(_mm512_permutex2var_epi16(a, low, b)));
        put_words<kStores>(to + dst.group, bits_as<u32x16>(_mm512_permutex2var_epi16(a, high, b)));
      }
    }
  }
#endif
  for (; 2 * s < rows; ++s) {
    const uint16_t* first = src + 2 * s * ld;
    const bool has_second = 2 * s + 1 < rows;
    for (int c = 0; c < Width; c += 16) {
      const int64_t valid = columns - c < 0 ? 0 : columns - c;
      const u16x16 low = valid >= 16 ? load_u16(first + c) : load_u16_n(first + c, valid);
      u16x16 high = {};
      if (has_second)
        high = valid >= 16 ? load_u16(first + ld + c) : load_u16_n(first + ld + c, valid);
      const u32x16 words =
          __builtin_convertvector(low, u32x16) | (__builtin_convertvector(high, u32x16) << 16);
      put_words<kStores>(dst.at + s * dst.step + c / 16 * dst.group, words);
    }
  }
}

// 16 elements as f32, or the first `valid` of them and zeros.
RHEA_INLINE f32x16 load_row(const float* p, int64_t valid) {
  return valid >= 16 ? load(p) : load_n(p, valid);
}
RHEA_INLINE f32x16 load_row(const uint16_t* p, int64_t valid) {
  return valid >= 16 ? load_bf16(p) : load_bf16_n(p, valid);
}

// Word (s, c) = row s at column c, for f32 rows and for bf16 ones, which are widened; missing
// columns up to Width are zero.
template <int Width, Stores kStores = Stores::cached, class Element>
RHEA_INLINE void copy_rows(const Element* src, int64_t ld, int64_t columns, int64_t rows,
                           PackedWords dst) {
  for (int64_t s = 0; s < rows; ++s) {
    const Element* row = src + s * ld;
    if (s + kPackAhead < rows) touch_row<Width>(row + kPackAhead * ld);
    for (int c = 0; c < Width; c += 16) {
      const int64_t valid = columns - c < 0 ? 0 : columns - c;
      put_words<kStores>(dst.at + s * dst.step + c / 16 * dst.group,
                         bits_as<u32x16>(load_row(row + c, valid)));
    }
  }
}

// A whole panel of 64 columns whose reduction has `k` elements, `depth` with padding; Element is
// float or uint16_t. nk: columns are rows of the matrix (ld elements apart), the reduction is
// contiguous.
template <Stores kStores = Stores::cached, Pairs kPairs = Pairs::kept, class Element>
RHEA_INLINE void pack_panel_nk(const Element* src, int64_t ld, int64_t columns, int64_t k,
                               int64_t depth, void* panel) {
  constexpr int64_t kPair = 4 / static_cast<int64_t>(sizeof(Element));
  constexpr bool kWidened = kPair == 2 && kPairs == Pairs::widened;
  constexpr int64_t kStepsOfWord = kWidened ? 2 : 1;
  uint32_t* dst = static_cast<uint32_t*>(panel);
  const int64_t whole = k / kPair;
  const int64_t bytes = static_cast<int64_t>(sizeof(Element));
  transpose_words<64, kStores, kWidened ? Pairs::widened : Pairs::kept>(
      reinterpret_cast<const char*>(src), ld * bytes, columns, whole, dst);
  int64_t done = whole * kStepsOfWord;
  if constexpr (kPair == 2) {
    if (k % 2 != 0) {
      for (int64_t c = 0; c < 64; ++c) {
        const uint32_t last = c < columns ? src[c * ld + k - 1] : 0;
        dst[done * 64 + c] = kWidened ? last << 16 : last;
      }
      ++done;
    }
  }
  const int64_t steps = depth * kStepsOfWord / kPair;
  __builtin_memset(dst + done * 64, 0, static_cast<uint64_t>(steps - done) * 256);
}
// kn: columns are contiguous, the reduction runs along rows ld elements apart. The words are f32,
// with bf16 widened, or pairs of bf16.
template <Stores kStores = Stores::cached, class Element>
RHEA_INLINE void pack_panel_kn_f32(const Element* src, int64_t ld, int64_t columns, int64_t k,
                                   int64_t depth, void* panel) {
  uint32_t* dst = static_cast<uint32_t*>(panel);
  copy_rows<64, kStores>(src, ld, columns, k, {dst, 64, 16});
  __builtin_memset(dst + k * 64, 0, static_cast<uint64_t>(depth - k) * 256);
}
template <Stores kStores = Stores::cached>
RHEA_INLINE void pack_panel_kn(const float* src, int64_t ld, int64_t columns, int64_t k,
                               int64_t depth, void* panel) {
  pack_panel_kn_f32<kStores>(src, ld, columns, k, depth, panel);
}
template <Stores kStores = Stores::cached>
RHEA_INLINE void pack_panel_kn(const uint16_t* src, int64_t ld, int64_t columns, int64_t k,
                               int64_t depth, void* panel) {
  uint32_t* dst = static_cast<uint32_t*>(panel);
  interleave_rows<64, kStores>(src, ld, columns, k, {dst, 64, 16});
  const int64_t done = (k + 1) / 2;
  __builtin_memset(dst + done * 64, 0, static_cast<uint64_t>(depth / 2 - done) * 256);
}

// A panel of bf16 pairs as a panel of f32, twice as deep.
RHEA_INLINE void widen_panel(const uint32_t* pairs, int64_t steps, uint32_t* to) {
  for (int64_t s = 0; s < steps; ++s, pairs += 64) {
#pragma GCC unroll 4
    for (int c = 0; c < 64; c += 16) {
      u32x16 words;
      __builtin_memcpy(&words, pairs + c, 64);
      put_step<64, Stores::cached, Pairs::widened>(to + c, s, words);
    }
  }
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
