// Register blocks of matrix products, for kernel files (rules in simd.h).
//
// Everything is counted in steps of the reduction: one step is a 32-bit word of each operand, that
// is one f32 or two neighbouring bf16. The right operand comes in panels of 64 columns, [steps][64]
// words (rhea/ir/type.h); a block covers Vectors * kVector of them. The left operand is read in
// place (rows `stride` bytes apart, steps contiguous) or from strips of 16 rows, [steps][16] words.
// A register block reaches 98 % of the peak from L2 in any of these shapes; what is lost is lost
// around it.
#pragma once
#include "rhea/ops/each.h"

namespace rhea::RHEA_ISA_NAMESPACE {

// The CPU's own vector: 64-byte vectors of a narrower CPU would live in memory.
#if RHEA_ISA >= 2
constexpr int kVector = 16;
constexpr int kRowsInPlace = 6, kVectorsInPlace = 4, kRowsInStrip = 8, kVectorsInStrip = 2;
#elif RHEA_ISA == 1
constexpr int kVector = 8;
constexpr int kRowsInPlace = 6, kVectorsInPlace = 2, kRowsInStrip = 4, kVectorsInStrip = 2;
#else
constexpr int kVector = 4;
constexpr int kRowsInPlace = 4, kVectorsInPlace = 2, kRowsInStrip = 4, kVectorsInStrip = 2;
#endif
constexpr int kPanelColumns = 64;
constexpr int kStripRows = 16;
typedef float vec __attribute__((vector_size(kVector * 4)));
typedef uint32_t uvec __attribute__((vector_size(kVector * 4)));

RHEA_INLINE vec load_vec(const float* p) {
  vec v;
  __builtin_memcpy(&v, p, sizeof(vec));
  return v;
}
RHEA_INLINE void store_vec(float* p, vec v) { __builtin_memcpy(p, &v, sizeof(vec)); }
RHEA_INLINE vec splat_word(uint32_t word) {
#if RHEA_ISA >= 2
  return bits_as<vec>(_mm512_set1_epi32(static_cast<int>(word)));
#elif RHEA_ISA == 1
  return bits_as<vec>(_mm256_set1_epi32(static_cast<int>(word)));
#else
  return bits_as<vec>(uvec{} + word);
#endif
}
// acc + a * b; rounded once where the CPU can.
RHEA_INLINE vec multiply_add(vec a, vec b, vec acc) {
#if RHEA_ISA >= 2
  return bits_as<vec>(
      _mm512_fmadd_ps(bits_as<__m512>(a), bits_as<__m512>(b), bits_as<__m512>(acc)));
#elif RHEA_ISA == 1
  return bits_as<vec>(
      _mm256_fmadd_ps(bits_as<__m256>(a), bits_as<__m256>(b), bits_as<__m256>(acc)));
#else
  return acc + a * b;
#endif
}

// Element types of a product.
struct F32Words {
  static constexpr int kPair = 1;
};
struct Bf16Words {
  static constexpr int kPair = 2;
};

RHEA_INLINE uint32_t load_word(const char* p) {
  uint32_t word;
  __builtin_memcpy(&word, p, 4);
  return word;
}

// acc + a * b, or of bf16 over both halves of the words. Other CPUs widen bf16 before they
// multiply: shifts and masks between the multiply-adds took a third of their time.
template <class Words>
RHEA_INLINE vec multiply_words(vec a, vec b, vec acc) {
#if RHEA_ISA == 3
  if constexpr (Words::kPair == 2) return dot_bf16(a, b, acc);
#else
  static_assert(Words::kPair == 1);
#endif
  return multiply_add(a, b, acc);
}

// One step of a block: acc[i][j] += a[i] * b[j], both halves of the words for bf16.
template <class Words, int Rows, int Vectors>
RHEA_INLINE void step(const uint32_t (&a)[Rows], const float* b, vec (&acc)[Rows][Vectors]) {
  vec bv[Vectors];
  each<Vectors>([&]<int J>() RHEA_EACH { bv[J] = load_vec(b + kVector * J); });
  each<Rows>([&]<int I>() RHEA_EACH {
    const vec av = splat_word(a[I]);
    each<Vectors>([&]<int J>()
                      RHEA_EACH { acc[I][J] = multiply_words<Words>(av, bv[J], acc[I][J]); });
  });
}

template <int Rows, int Vectors>
RHEA_INLINE void clear(vec (&acc)[Rows][Vectors]) {
  each<Rows>([&]<int I>()
                 RHEA_EACH { each<Vectors>([&]<int J>() RHEA_EACH { acc[I][J] = vec{}; }); });
}

// A copy in memory, for what takes the elements of a block one by one; rows are whole vectors of
// kLanes.
template <int Rows, int Vectors>
struct Tile {
  static constexpr int kWide = (Vectors * kVector + kLanes - 1) / kLanes * kLanes;
  float at[Rows][kWide] = {};
  explicit __attribute__((always_inline)) Tile(const vec (&acc)[Rows][Vectors]) {
    each<Rows>([&]<int I>() RHEA_EACH {
      each<Vectors>([&]<int J>() RHEA_EACH { store_vec(at[I] + J * kVector, acc[I][J]); });
    });
  }
};

// Writes a block to c (rows ldc floats apart), or adds to it. Only `rows` and `columns` of it
// exist.
template <int Rows, int Vectors>
RHEA_INLINE void write_block(const vec (&acc)[Rows][Vectors], float* c, int64_t ldc, int64_t rows,
                             int64_t columns, bool add) {
  if (rows >= Rows && columns >= Vectors * kVector) {
    each<Rows>([&]<int I>() RHEA_EACH {
      each<Vectors>([&]<int J>() RHEA_EACH {
        float* p = c + I * ldc + J * kVector;
        store_vec(p, add ? load_vec(p) + acc[I][J] : acc[I][J]);
      });
    });
    return;
  }
  const Tile<Rows, Vectors> tile(acc);
  for (int64_t i = 0; i < Rows && i < rows; ++i) {
    for (int64_t j = 0; j < Vectors * kVector && j < columns; ++j)
      c[i * ldc + j] = add ? c[i * ldc + j] + tile.at[i][j] : tile.at[i][j];
  }
}

// Writes a block rounded to bf16.
template <int Rows, int Vectors>
RHEA_INLINE void write_block_bf16(const vec (&acc)[Rows][Vectors], uint16_t* c, int64_t ldc,
                                  int64_t columns) {
  constexpr int kColumns = Vectors * kVector;
#if RHEA_ISA == 3
  // The dot product has flushed subnormals already, so the instruction rounds as store_bf16 does.
  if (Vectors % 2 == 0 && columns >= kColumns) {
    each<Rows>([&]<int I>() RHEA_EACH {
      each<Vectors / 2>([&]<int J>() RHEA_EACH {
        _mm512_storeu_si512(c + I * ldc + 2 * J * kVector,
                            bits_as<__m512i>(_mm512_cvtne2ps_pbh(bits_as<__m512>(acc[I][2 * J + 1]),
                                                                 bits_as<__m512>(acc[I][2 * J]))));
      });
    });
    return;
  }
#endif
  const Tile<Rows, Vectors> tile(acc);
  for (int i = 0; i < Rows; ++i) {
    for (int64_t j = 0; j < kColumns && j < columns; j += kLanes) {
      const int64_t n = (columns < kColumns ? columns : kColumns) - j;
      store_bf16_n(c + i * ldc + j, load(tile.at[i] + j), n < kLanes ? n : kLanes);
    }
  }
}

// What becomes of a block: written to f32 rows, or added to them.
struct ToF32 {
  float* c;
  int64_t ldc, columns;
  bool add;
  template <int Rows, int Vectors>
  __attribute__((always_inline)) void operator()(vec (&acc)[Rows][Vectors]) const {
    write_block(acc, c, ldc, Rows, columns, add);
  }
};
// Written to bf16 rows, after what earlier parts of the reduction have left in `sums` (null: this
// is the only part).
struct ToBf16 {
  uint16_t* c;
  int64_t ldc, columns;
  const float* sums;
  int64_t ld_sums;
  template <int Rows, int Vectors>
  __attribute__((always_inline)) void operator()(vec (&acc)[Rows][Vectors]) const {
    if (sums != nullptr) {
      each<Rows>([&]<int I>() RHEA_EACH {
        each<Vectors>([&]<int J>() RHEA_EACH {
          acc[I][J] = load_vec(sums + I * ld_sums + J * kVector) + acc[I][J];
        });
      });
    }
    write_block_bf16(acc, c, ldc, columns);
  }
};

// What the next blocks will read and what lies beyond L2: two cache lines for every few steps of
// this block, the pairs `stride` bytes apart; a block in strips fetches those `second` bytes
// further, too.
struct Ahead {
  const char* at;
  int64_t stride, second = 0;
};
// Nothing to foresee: what is at hand is touched again.
RHEA_INLINE Ahead nothing_ahead(const void* at_hand) {
  return {static_cast<const char*>(at_hand), 0};
}

template <class Words, int Rows, int Vectors>
RHEA_INLINE void row_step(const char* a, int64_t stride, const float* b,
                          vec (&acc)[Rows][Vectors]) {
  uint32_t words[Rows];
  each<Rows>([&]<int I>() RHEA_EACH { words[I] = load_word(a + I * stride); });
  step<Words>(words, b, acc);
}

// A block with the left operand in place. `odd`: after the steps one element of the reduction is
// left, half a word. The rows of the next block are fetched on the way: they lie far apart, which
// the hardware does not foresee (1 point of the peak at 768 elements a row, 8 at 256).
template <class Words, int Rows, int Vectors, class To>
RHEA_INLINE void block_in_place(int64_t steps, bool odd, const char* a, int64_t stride,
                                const float* b, const To& to, Ahead ahead) {
  vec acc[Rows][Vectors];
  clear(acc);
  constexpr int64_t kLine = 16;  // steps of a row in a cache line
  const char* next_rows = a + Rows * stride;
  int64_t s = 0;
  for (; s + kLine <= steps; s += kLine) {
    __builtin_prefetch(ahead.at, 0, 2);
    __builtin_prefetch(ahead.at + 64, 0, 2);
    ahead.at += ahead.stride;
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) __builtin_prefetch(next_rows + i * stride, 0, 3);
    next_rows += 64;
#pragma GCC unroll 2
    for (int i = 0; i < kLine; ++i) {
      row_step<Words>(a, stride, b, acc);
      a += 4;
      b += kPanelColumns;
    }
  }
  for (; s < steps; ++s) {
    row_step<Words>(a, stride, b, acc);
    a += 4;
    b += kPanelColumns;
  }
  if (odd) {
    uint32_t words[Rows];
    each<Rows>([&]<int I>() RHEA_EACH {
      uint16_t half;
      __builtin_memcpy(&half, a + I * stride, 2);
      words[I] = half;
    });
    step<Words>(words, b, acc);
  }
  to(acc);
}
// The same with fewer rows at the end of a matrix: each count has its own code, no masks in the
// loop.
template <class Words, int Rows, int Vectors, class To>
static __attribute__((noinline)) void rows_in_place(int64_t rows, int64_t steps, bool odd,
                                                    const char* a, int64_t stride, const float* b,
                                                    const To& to, Ahead ahead) {
  if constexpr (Rows > 0) {
    if (rows >= Rows)
      return block_in_place<Words, Rows, Vectors>(steps, odd, a, stride, b, to, ahead);
    rows_in_place<Words, Rows - 1, Vectors>(rows, steps, odd, a, stride, b, to, ahead);
  }
}
template <class Words, int Rows, int Vectors>
RHEA_INLINE void rows_in_place(int64_t rows, int64_t steps, bool odd, const char* a, int64_t stride,
                               const float* b, float* c, int64_t ldc, int64_t columns, bool add) {
  rows_in_place<Words, Rows, Vectors>(rows, steps, odd, a, stride, b, ToF32{c, ldc, columns, add},
                                      nothing_ahead(b));
}

template <class Words, int Rows, int Vectors>
RHEA_INLINE void strip_step(const uint32_t* a, const float* b, vec (&acc)[Rows][Vectors]) {
  uint32_t words[Rows];
  each<Rows>([&]<int I>() RHEA_EACH { words[I] = a[I]; });
  step<Words>(words, b, acc);
}

// A block with the left operand from a strip.
template <class Words, int Rows, int Vectors>
static __attribute__((noinline)) void block_in_strip(int64_t rows, int64_t steps, const uint32_t* a,
                                                     const float* b, float* c, int64_t ldc,
                                                     int64_t columns, bool add, Ahead ahead) {
  vec acc[Rows][Vectors];
  clear(acc);
  int64_t s = 0;
  for (; s + 8 <= steps; s += 8, ahead.at += ahead.stride) {
    __builtin_prefetch(ahead.at, 0, 2);
    __builtin_prefetch(ahead.at + 64, 0, 2);
    __builtin_prefetch(ahead.at + ahead.second, 0, 2);
    __builtin_prefetch(ahead.at + ahead.second + 64, 0, 2);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i)
      strip_step<Words>(a + (s + i) * kStripRows, b + (s + i) * kPanelColumns, acc);
  }
  for (; s < steps; ++s) strip_step<Words>(a + s * kStripRows, b + s * kPanelColumns, acc);
  // Strips are padded, so a block may have more rows than the result.
  write_block(acc, c, ldc, rows, columns, add);
}
template <class Words, int Rows, int Vectors>
RHEA_INLINE void block_in_strip(int64_t rows, int64_t steps, const uint32_t* a, const float* b,
                                float* c, int64_t ldc, int64_t columns, bool add) {
  block_in_strip<Words, Rows, Vectors>(rows, steps, a, b, c, ldc, columns, add, nothing_ahead(b));
}

// Brings a tile of the result towards the core with intent to write, one tile before its use: worth
// 3 to 10 % where the result comes from memory.
RHEA_INLINE void prefetch_tile(const float* c, int64_t ldc, int64_t rows, int columns) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; j += 16) __builtin_prefetch(c + i * ldc + j, 1, 2);
  }
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
