// Vectors of the tiled attention kernels: one hardware register wide, so that the compiler keeps
// blocks of them in registers. Included by kernel files only (rules in rhea/ops/simd.h).
#pragma once
#include "rhea/ops/simd.h"

#if defined(__clang__)
#define RHEA_UNROLL _Pragma("unroll")
#else
#define RHEA_UNROLL _Pragma("GCC unroll 16")
#endif
#define RHEA_INLINE_LAMBDA __attribute__((always_inline))

namespace rhea::RHEA_ISA_NAMESPACE {

#if RHEA_ISA >= 2
constexpr int kVec = 16;
#elif RHEA_ISA == 1
constexpr int kVec = 8;
#else
constexpr int kVec = 4;
#endif
typedef float fvec __attribute__((vector_size(kVec * 4)));
typedef int32_t ivec __attribute__((vector_size(kVec * 4)));
typedef uint32_t uvec __attribute__((vector_size(kVec * 4)));
typedef uint16_t hvec __attribute__((vector_size(kVec * 2)));

RHEA_INLINE fvec vec_of(float x) { return x - fvec{}; }  // x - 0 keeps the sign of zero
// Through a type that needs no alignment. Not memcpy: that may alias everything, so that after each
// store the compiler would read all pointers again.
typedef float unaligned_fvec __attribute__((vector_size(kVec * 4), aligned(4)));
RHEA_INLINE fvec vec_load(const float* p) { return *reinterpret_cast<const unaligned_fvec*>(p); }
RHEA_INLINE void vec_store(float* p, fvec v) { *reinterpret_cast<unaligned_fvec*>(p) = v; }
RHEA_INLINE ivec vec_index() {
  ivec v;
  for (int i = 0; i < kVec; ++i) v[i] = i;
  return v;
}
RHEA_INLINE fvec vec_select(ivec mask, fvec a, fvec b) { return mask ? a : b; }

RHEA_INLINE fvec vec_fma(fvec a, fvec b, fvec c) {
#if RHEA_ISA >= 2
  return (fvec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif RHEA_ISA == 1
  return (fvec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}

// Hides where a constant lies: the compiler then reads it from memory instead of keeping a register
// for it all through a product, whose accumulators it would spill.
template <class T>
RHEA_INLINE const T* in_memory(const T* p) {
  asm("" : "+r"(p));
  return p;
}
// Forces the value into a register now.
RHEA_INLINE fvec in_register(fvec v) {
#if RHEA_ISA >= 2
  asm("" : "+v"(v));
#elif defined(__x86_64__)
  asm("" : "+x"(v));
#endif
  return v;
}

// 2^x for N vectors in step (one after the other they would wait for their latencies); 1.8 ulp.
// Below 2^-126 the result may be flushed or stay at 2^-126, above 2^127 it is at least 2^126.
constexpr float kExp2[6] = {1.0f,
                            0.693146824836731f,
                            0.24022236466407776f,
                            0.05550891533493996f,
                            0.009671762585639954f,
                            0.0013225707225501537f};
template <int N>
RHEA_INLINE void vec_exp2(fvec (&x)[N]) {
  const float* k = in_memory(kExp2);
  fvec n[N], p[N];
#if RHEA_ISA >= 2
  RHEA_UNROLL for (int i = 0; i < N; ++i) n[i] = (fvec)_mm512_roundscale_ps((__m512)x[i], 8);
#else
  fvec input[N];
  RHEA_UNROLL for (int i = 0; i < N; ++i) {
    input[i] = x[i];
    x[i] = vec_select(x[i] < -126.0f, vec_of(-126.0f), x[i]);
    x[i] = vec_select(x[i] > 127.0f, vec_of(127.0f), x[i]);
    n[i] = (x[i] + 0x1.8p23f) - 0x1.8p23f;
  }
#endif
  RHEA_UNROLL for (int i = 0; i < N; ++i) {
    x[i] = x[i] - n[i];
    p[i] = vec_of(k[5]);
  }
  RHEA_UNROLL for (int d = 4; d >= 0; --d) RHEA_UNROLL for (int i = 0; i < N; ++i) p[i] =
      vec_fma(p[i], x[i], vec_of(k[d]));
#if RHEA_ISA >= 2
  RHEA_UNROLL for (int i = 0; i < N; ++i) x[i] = (fvec)_mm512_scalef_ps((__m512)p[i], (__m512)n[i]);
#else
  RHEA_UNROLL for (int i = 0; i < N; ++i) {
    const ivec power = __builtin_convertvector(n[i], ivec) << 23;
    // Beyond the range 2^x is infinite, and NaN stays NaN.
    x[i] = vec_select(input[i] <= 127.0f, (fvec)((ivec)p[i] + power), input[i] + __builtin_inff());
  }
#endif
}
RHEA_INLINE fvec vec_exp2(fvec x) {
  fvec v[1] = {x};
  vec_exp2(v);
  return v[0];
}

// tanh through 2^x: absolute error 2e-7.
constexpr float kLog2E = 1.44269504f;
RHEA_INLINE fvec vec_tanh(fvec x) { return 1.0f - 2.0f / (1.0f + vec_exp2(x * (2 * kLog2E))); }

// Base-2 logarithm of positive numbers.
RHEA_INLINE fvec vec_log2(fvec x) {
#if RHEA_ISA >= 2
  // exponent + 2 atanh((m - 1) / (m + 1)) / ln 2, m in [0.75, 1.5)
  const fvec m = (fvec)_mm512_getmant_ps((__m512)x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src);
  const fvec e = (fvec)_mm512_getexp_ps((__m512)x) - (fvec)_mm512_getexp_ps((__m512)m);
  const fvec z = (m - 1.0f) / (m + 1.0f), y = z * z;
  fvec p = vec_of(2.885390082f / 11);
  for (int k = 9; k > 0; k -= 2) p = vec_fma(p, y, vec_of(2.885390082f / static_cast<float>(k)));
  return vec_fma(p, z, e);
#else
  for (int i = 0; i < kVec; ++i) x[i] = __builtin_log2f(x[i]);
  return x;
#endif
}

// ---- elements of a row; only the first n of kVec are touched, the others read as zero
RHEA_INLINE float element(const float* p) { return *p; }
RHEA_INLINE float element(const uint16_t* p) {
  return bits_as<float>(static_cast<uint32_t>(*p) << 16);
}
RHEA_INLINE fvec row_load(const float* p, int64_t n) {
  if (n >= kVec) return vec_load(p);
#if RHEA_ISA >= 2
  return load_n(p, n);
#else
  fvec v = {};
  for (int64_t i = 0; i < n; ++i) v[i] = p[i];
  return v;
#endif
}
RHEA_INLINE fvec row_load(const uint16_t* p, int64_t n) {
#if RHEA_ISA >= 2
  return n >= kVec ? load_bf16(p) : load_bf16_n(p, n);
#else
  hvec h = {};
  __builtin_memcpy(&h, p, static_cast<uint64_t>(n < kVec ? n : kVec) * 2);
  return (fvec)(__builtin_convertvector(h, uvec) << 16);
#endif
}
RHEA_INLINE void row_store(float* p, fvec v, int64_t n) {
  if (n >= kVec) return vec_store(p, v);
#if RHEA_ISA >= 2
  store_n(p, v, n);
#else
  for (int64_t i = 0; i < n; ++i) p[i] = v[i];
#endif
}
RHEA_INLINE void row_store(uint16_t* p, fvec v, int64_t n) {
#if RHEA_ISA == 3
  const __m256i h = (__m256i)_mm512_cvtneps_pbh((__m512)v);
  if (n >= kVec) return _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(p), h);
  _mm256_mask_storeu_epi16(p, first_lanes(n), h);
#elif RHEA_ISA == 2
  if (n >= kVec) return store_bf16(p, v);
  store_bf16_n(p, v, n);
#else
  const uvec u = (uvec)v;
  const uvec rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const uvec bits = (ivec)(v != v) ? (u >> 16) | 0x40u : rounded;
  const hvec h = __builtin_convertvector(bits, hvec);
  __builtin_memcpy(p, &h, static_cast<uint64_t>(n < kVec ? n : kVec) * 2);
#endif
}

#if RHEA_ISA >= 2
// Transposes 16 x 16 dwords in four rounds; each exchanges the off-diagonal blocks of size d.
RHEA_INLINE void transpose16(__m512i (&r)[16]) {
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  RHEA_UNROLL for (int d = 1; d < 16; d *= 2) {
    const __mmask16 upper = _mm512_test_epi32_mask(lane, _mm512_set1_epi32(d));
    const __m512i low = _mm512_mask_add_epi32(lane, upper, lane, _mm512_set1_epi32(16 - d));
    const __m512i high = _mm512_mask_add_epi32(_mm512_add_epi32(lane, _mm512_set1_epi32(d)), upper,
                                               lane, _mm512_set1_epi32(16));
    RHEA_UNROLL for (int i = 0; i < 16; ++i) {
      if (i & d) continue;
      const __m512i a = r[i], b = r[i + d];
      r[i] = _mm512_permutex2var_epi32(a, low, b);
      r[i + d] = _mm512_permutex2var_epi32(a, high, b);
    }
  }
}
#endif

// Lane i = sum of the lanes of r[i].
RHEA_INLINE fvec row_sums(fvec (&r)[kVec]) {
#if RHEA_ISA >= 2
  __m512i t[16];
  for (int i = 0; i < 16; ++i) t[i] = (__m512i)r[i];
  transpose16(t);
  fvec s[8];
  RHEA_UNROLL for (int i = 0; i < 8; ++i) s[i] = (fvec)t[i] + (fvec)t[i + 8];
  RHEA_UNROLL for (int w = 4; w > 0; w /= 2) RHEA_UNROLL for (int i = 0; i < w; ++i) s[i] =
      s[i] + s[i + w];
  return s[0];
#else
  fvec sums;
  for (int i = 0; i < kVec; ++i) {
    float sum = 0;
    for (int j = 0; j < kVec; ++j) sum += r[i][j];
    sums[i] = sum;
  }
  return sums;
#endif
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
