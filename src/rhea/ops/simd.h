// Vectors of 16 lanes for kernels: one source, compiled once per instruction set by rhea_kernel()
// (cmake/RheaTargets.cmake), with the same bits on each.
//
// Rules for kernel files:
//  - Everything lies in `namespace rhea::RHEA_ISA_NAMESPACE`, so that the copies do not clash. A
//    table in a plain file declares the functions of all copies and picks one.
//  - Inline functions of other headers (std containers, dtype.h, attr.h) must not be called: the
//    linker keeps one copy of an inline function, and if that is the one compiled with AVX-512, an
//    older CPU crashes in unrelated code. Functions here are static and always inlined.
//  - The compiler never contracts a*b+c (-ffp-contract=off). Where a fused product is wanted,
//    fma() gives it on every CPU.
#pragma once
#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#ifndef RHEA_ISA
#define RHEA_ISA 0
#endif
#if RHEA_ISA == 0
#define RHEA_ISA_NAMESPACE isa_plain
#elif RHEA_ISA == 1
#define RHEA_ISA_NAMESPACE isa_avx2
#elif RHEA_ISA == 2
#define RHEA_ISA_NAMESPACE isa_avx512
#else
#define RHEA_ISA_NAMESPACE isa_avx512_bf16
#endif

#define RHEA_INLINE static inline __attribute__((always_inline))

namespace rhea::RHEA_ISA_NAMESPACE {

typedef float f32x16 __attribute__((vector_size(64)));
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x4 __attribute__((vector_size(16)));
typedef int32_t i32x16 __attribute__((vector_size(64)));
typedef uint32_t u32x16 __attribute__((vector_size(64)));
typedef uint16_t u16x16 __attribute__((vector_size(32)));
typedef uint8_t u8x16 __attribute__((vector_size(16)));
typedef double f64x8 __attribute__((vector_size(64)));
typedef int64_t i64x8 __attribute__((vector_size(64)));
typedef uint64_t u64x8 __attribute__((vector_size(64)));

constexpr int64_t kLanes = 16;

// Same bits, other type.
template <class To, class From>
RHEA_INLINE To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}

RHEA_INLINE f32x16 splat(float x) { return f32x16{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
RHEA_INLINE i32x16 splat_i32(int32_t x) {
  return i32x16{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
}
// Lane index 0..15.
RHEA_INLINE i32x16 lane_index() {
  return i32x16{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
}
// Lanes of a where the mask (result of a comparison: all ones or zero) is set, else of b.
RHEA_INLINE f32x16 select(i32x16 mask, f32x16 a, f32x16 b) { return mask ? a : b; }
RHEA_INLINE i32x16 select(i32x16 mask, i32x16 a, i32x16 b) { return mask ? a : b; }
RHEA_INLINE u32x16 select(i32x16 mask, u32x16 a, u32x16 b) { return mask ? a : b; }

#if RHEA_ISA == 3
// sums + a . b over the two bf16 of each word. Clang 16 ends with a segmentation fault where it
// folds a broadcast of `a` from memory into the instruction.
RHEA_INLINE f32x16 dot_bf16(f32x16 a, f32x16 b, f32x16 sums) {
#if defined(__clang__)
  asm("" : "+v"(a));
#endif
  return bits_as<f32x16>(
      _mm512_dpbf16_ps(bits_as<__m512>(sums), bits_as<__m512bh>(a), bits_as<__m512bh>(b)));
}
#endif

// ---- memory: any alignment; the _n forms touch the first n lanes only (all from 16 on), loads
// give zero in the others
RHEA_INLINE f32x16 load(const float* p) {
  f32x16 v;
  __builtin_memcpy(&v, p, 64);
  return v;
}
RHEA_INLINE void store(float* p, f32x16 v) { __builtin_memcpy(p, &v, 64); }

#if RHEA_ISA >= 2
RHEA_INLINE __mmask16 first_lanes(int64_t n) {
  return static_cast<__mmask16>(n >= 16 ? 0xffffu : (1u << n) - 1u);
}
#endif

RHEA_INLINE f32x16 load_n(const float* p, int64_t n) {
#if RHEA_ISA >= 2
  return bits_as<f32x16>(_mm512_maskz_loadu_ps(first_lanes(n), p));
#else
  if (n >= kLanes) return load(p);
  f32x16 v = {};
  if (n > 0) __builtin_memcpy(&v, p, static_cast<uint64_t>(n) * 4);
  return v;
#endif
}
RHEA_INLINE void store_n(float* p, f32x16 v, int64_t n) {
#if RHEA_ISA >= 2
  _mm512_mask_storeu_ps(p, first_lanes(n), bits_as<__m512>(v));
#else
  if (n >= kLanes) return store(p, v);
  if (n > 0) __builtin_memcpy(p, &v, static_cast<uint64_t>(n) * 4);
#endif
}
RHEA_INLINE i32x16 load_i32(const int32_t* p) {
  i32x16 v;
  __builtin_memcpy(&v, p, 64);
  return v;
}
RHEA_INLINE void store_i32(int32_t* p, i32x16 v) { __builtin_memcpy(p, &v, 64); }

// ---- 16-bit floats; `void*` because the elements are rhea::bf16 / rhea::f16 to the callers
RHEA_INLINE u16x16 load_u16(const void* p) {
  u16x16 v;
  __builtin_memcpy(&v, p, 32);
  return v;
}
RHEA_INLINE u16x16 load_u16_n(const void* p, int64_t n) {
#if RHEA_ISA >= 2
  return bits_as<u16x16>(_mm256_maskz_loadu_epi16(first_lanes(n), p));
#else
  if (n >= kLanes) return load_u16(p);
  u16x16 v = {};
  if (n > 0) __builtin_memcpy(&v, p, static_cast<uint64_t>(n) * 2);
  return v;
#endif
}
RHEA_INLINE void store_u16(void* p, u16x16 v) { __builtin_memcpy(p, &v, 32); }
RHEA_INLINE void store_u16_n(void* p, u16x16 v, int64_t n) {
#if RHEA_ISA >= 2
  _mm256_mask_storeu_epi16(p, first_lanes(n), bits_as<__m256i>(v));
#else
  if (n >= kLanes) return store_u16(p, v);
  if (n > 0) __builtin_memcpy(p, &v, static_cast<uint64_t>(n) * 2);
#endif
}

RHEA_INLINE f32x16 bf16_to_f32(u16x16 v) {
  return bits_as<f32x16>(__builtin_convertvector(v, u32x16) << 16);
}
// Round to nearest even; NaN stays NaN. By integers, or by the CPU's instruction where there is
// one: that one flushes subnormals, which are looked for first.
RHEA_INLINE u32x16 bf16_bits_of(f32x16 v) {
  const u32x16 u = bits_as<u32x16>(v);
  const u32x16 rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return select(v != v, (u >> 16) | 0x40u, rounded);
}
RHEA_INLINE u16x16 f32_to_bf16(f32x16 v) {
#if RHEA_ISA == 3
  constexpr int kSubnormal = 0x20;
  if (__builtin_expect(_mm512_fpclass_ps_mask(bits_as<__m512>(v), kSubnormal) == 0, 1))
    return bits_as<u16x16>(_mm512_cvtneps_pbh(bits_as<__m512>(v)));
#endif
  return __builtin_convertvector(bf16_bits_of(v), u16x16);
}
// The f32 value rounded to bf16, still as f32.
RHEA_INLINE f32x16 round_bf16(f32x16 v) {
#if RHEA_ISA == 3
  return bf16_to_f32(f32_to_bf16(v));
#else
  return bits_as<f32x16>(bf16_bits_of(v) << 16);
#endif
}

RHEA_INLINE f32x16 f16_to_f32(u16x16 v) {
#if RHEA_ISA >= 2
  return bits_as<f32x16>(_mm512_cvtph_ps(bits_as<__m256i>(v)));
#else
  // Exponent and mantissa move up by 13 bits and the exponent is rebiased by a product that is
  // exact, also for subnormals; infinity and NaN get the exponent of f32.
  const u32x16 u = __builtin_convertvector(v, u32x16);
  const u32x16 sign = (u & 0x8000u) << 16;
  const u32x16 magnitude = (u & 0x7fffu) << 13;
  const u32x16 finite = bits_as<u32x16>(bits_as<f32x16>(magnitude) * 0x1p112f);
  const u32x16 quiet = select((u & 0x7fffu) > 0x7c00u, u32x16{} + 0x400000u, u32x16{});
  const u32x16 special = magnitude | 0x7f800000u | quiet;
  return bits_as<f32x16>(sign | select((u & 0x7c00u) == 0x7c00u, special, finite));
#endif
}
// Round to nearest even, overflow to infinity, subnormals kept.
RHEA_INLINE u16x16 f32_to_f16(f32x16 v) {
#if RHEA_ISA >= 2
  return bits_as<u16x16>(_mm512_cvtps_ph(bits_as<__m512>(v), 0));
#else
  const u32x16 u = bits_as<u32x16>(v);
  const u32x16 sign = (u >> 16) & 0x8000u;
  const u32x16 magnitude = u & 0x7fffffffu;
  // Normal results: rebias the exponent, round to nearest even on the 13 dropped bits.
  const u32x16 normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Below 2^-14: adding 0.5 puts the unit of f16's subnormals at the last bit of the sum.
  const u32x16 subnormal = bits_as<u32x16>(bits_as<f32x16>(magnitude) + 0.5f) - 0x3f000000u;
  const u32x16 special =
      select(magnitude > 0x7f800000u, 0x7e00u | ((magnitude >> 13) & 0x3ffu), u32x16{} + 0x7c00u);
  u32x16 half = select(magnitude < 0x38800000u, subnormal, normal);
  half = select(magnitude >= 0x477ff000u, special, half);
  return __builtin_convertvector(sign | half, u16x16);
#endif
}
RHEA_INLINE f32x16 round_f16(f32x16 v) { return f16_to_f32(f32_to_f16(v)); }

RHEA_INLINE f32x16 load_bf16(const void* p) { return bf16_to_f32(load_u16(p)); }
RHEA_INLINE f32x16 load_bf16_n(const void* p, int64_t n) { return bf16_to_f32(load_u16_n(p, n)); }
RHEA_INLINE void store_bf16(void* p, f32x16 v) { store_u16(p, f32_to_bf16(v)); }
RHEA_INLINE void store_bf16_n(void* p, f32x16 v, int64_t n) { store_u16_n(p, f32_to_bf16(v), n); }
RHEA_INLINE f32x16 load_f16(const void* p) { return f16_to_f32(load_u16(p)); }
RHEA_INLINE f32x16 load_f16_n(const void* p, int64_t n) { return f16_to_f32(load_u16_n(p, n)); }
RHEA_INLINE void store_f16(void* p, f32x16 v) { store_u16(p, f32_to_f16(v)); }
RHEA_INLINE void store_f16_n(void* p, f32x16 v, int64_t n) { store_u16_n(p, f32_to_f16(v), n); }

// ---- arithmetic that the operators do not give
#if RHEA_ISA == 0
// a * b + c rounded once, for eight lanes: the product is exact in f64; the sum is rounded to odd
// (truncated, last bit set where anything was lost), which makes the second rounding to f32 right.
RHEA_INLINE f32x8 fma_by_f64(f32x8 a, f32x8 b, f32x8 c) {
  const f64x8 product = __builtin_convertvector(a, f64x8) * __builtin_convertvector(b, f64x8);
  const f64x8 addend = __builtin_convertvector(c, f64x8);
  const f64x8 sum = product + addend;
  const f64x8 part = sum - product;
  const f64x8 lost = (product - (sum - part)) + (addend - part);
  const i64x8 inexact = (lost != 0.0) & (lost - lost == 0.0);
  const i64x8 away = ((lost > 0.0) != (sum > 0.0)) & 1;  // |sum| is above the exact value
  const i64x8 u = bits_as<i64x8>(sum);
  const i64x8 odd = (u - away) | 1;
  return __builtin_convertvector(bits_as<f64x8>(inexact ? odd : u), f32x8);
}
#endif
// a * b + c, rounded once.
RHEA_INLINE f32x16 fma(f32x16 a, f32x16 b, f32x16 c) {
#if RHEA_ISA >= 2
  return bits_as<f32x16>(
      _mm512_fmadd_ps(bits_as<__m512>(a), bits_as<__m512>(b), bits_as<__m512>(c)));
#elif RHEA_ISA == 1
  struct Halves {
    __m256 low, high;
  };
  const Halves x = bits_as<Halves>(a), y = bits_as<Halves>(b), z = bits_as<Halves>(c);
  return bits_as<f32x16>(
      Halves{_mm256_fmadd_ps(x.low, y.low, z.low), _mm256_fmadd_ps(x.high, y.high, z.high)});
#else
  struct Halves {
    f32x8 low, high;
  };
  const Halves x = bits_as<Halves>(a), y = bits_as<Halves>(b), z = bits_as<Halves>(c);
  return bits_as<f32x16>(
      Halves{fma_by_f64(x.low, y.low, z.low), fma_by_f64(x.high, y.high, z.high)});
#endif
}
RHEA_INLINE f32x16 fma(f32x16 a, float b, f32x16 c) { return fma(a, splat(b), c); }
RHEA_INLINE f32x16 fma(f32x16 a, f32x16 b, float c) { return fma(a, b, splat(c)); }

RHEA_INLINE f32x16 sqrt(f32x16 x) {
#if RHEA_ISA >= 2
  return bits_as<f32x16>(_mm512_sqrt_ps(bits_as<__m512>(x)));
#else
  f32x16 y;
  for (int i = 0; i < 16; ++i) y[i] = __builtin_sqrtf(x[i]);
  return y;
#endif
}
// Exact square root and division: the approximations of CPUs differ from each other.
RHEA_INLINE f32x16 rsqrt(f32x16 x) { return 1.0f / sqrt(x); }
RHEA_INLINE f32x16 abs(f32x16 x) { return bits_as<f32x16>(bits_as<u32x16>(x) & 0x7fffffffu); }
RHEA_INLINE f32x16 copy_sign(f32x16 magnitude, f32x16 sign) {
  return bits_as<f32x16>((bits_as<u32x16>(magnitude) & 0x7fffffffu) |
                         (bits_as<u32x16>(sign) & 0x80000000u));
}
// NaN if either is NaN, as PyTorch.
RHEA_INLINE f32x16 maximum(f32x16 a, f32x16 b) { return select((a > b) | (a != a), a, b); }
RHEA_INLINE f32x16 minimum(f32x16 a, f32x16 b) { return select((a < b) | (a != a), a, b); }

// ---- across lanes, always in the same tree: lanes i and i+8, then i+4, i+2, i+1
RHEA_INLINE float sum_lanes(f32x16 v) {
  struct Half {
    f32x8 low, high;
  };
  struct Quarter {
    f32x4 low, high;
  };
  const Half h = bits_as<Half>(v);
  const Quarter q = bits_as<Quarter>(h.low + h.high);
  const f32x4 s = q.low + q.high;
  return (s[0] + s[2]) + (s[1] + s[3]);
}
// Lane i = sum_lanes(v[i]), for 16 vectors at the price of two.
RHEA_INLINE f32x16 sum_each(const f32x16 (&v)[16]) {
#if RHEA_ISA >= 2
  __m512 halves[8], quarters[4], pairs[2];
  const auto at = [&](int i) __attribute__((always_inline)) { return bits_as<__m512>(v[i]); };
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i)
    halves[i] = _mm512_add_ps(_mm512_shuffle_f32x4(at(i), at(i + 8), 0x44),
                              _mm512_shuffle_f32x4(at(i), at(i + 8), 0xee));
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    quarters[i] = _mm512_add_ps(_mm512_shuffle_f32x4(halves[i], halves[i + 4], 0x88),
                                _mm512_shuffle_f32x4(halves[i], halves[i + 4], 0xdd));
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i)
    pairs[i] = _mm512_add_ps(_mm512_shuffle_ps(quarters[i], quarters[i + 2], 0x44),
                             _mm512_shuffle_ps(quarters[i], quarters[i + 2], 0xee));
  const __m512 sums = _mm512_add_ps(_mm512_shuffle_ps(pairs[0], pairs[1], 0x88),
                                    _mm512_shuffle_ps(pairs[0], pairs[1], 0xdd));
  // They lie in the order in which the rounds took them.
  const __m512i order = _mm512_setr_epi32(0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15);
  return bits_as<f32x16>(_mm512_permutexvar_ps(order, sums));
#else
  f32x16 sums;
  for (int i = 0; i < 16; ++i) sums[i] = sum_lanes(v[i]);
  return sums;
#endif
}
RHEA_INLINE double sum_lanes(f64x8 v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}
// NaN if any lane is NaN.
RHEA_INLINE float max_lanes(f32x16 v) {
  float m = v[0];
  for (int i = 1; i < 16; ++i) m = (v[i] > m || v[i] != v[i]) ? v[i] : m;
  return m;
}

// The f32 lanes in f64, eight at a time.
RHEA_INLINE f64x8 low_as_f64(f32x16 v) {
  f32x8 half;
  __builtin_memcpy(&half, &v, 32);
  return __builtin_convertvector(half, f64x8);
}
RHEA_INLINE f64x8 high_as_f64(f32x16 v) {
  f32x8 half;
  __builtin_memcpy(&half, reinterpret_cast<const char*>(&v) + 32, 32);
  return __builtin_convertvector(half, f64x8);
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
