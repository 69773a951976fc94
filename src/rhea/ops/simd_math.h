// Exponentials and their relatives on 16 lanes, for kernel files (rules in simd.h). Coefficients
// are minimax fits made for these intervals. Errors are given in units in the last place (ulp) of
// f32, measured over all floats of the domain by ops/simd_test.cpp; subnormal results are kept.
#pragma once
#include "rhea/ops/simd.h"

namespace rhea::RHEA_ISA_NAMESPACE {

// Adding and subtracting this rounds to the nearest integer, which then sits in the low bits.
constexpr float kRoundMagic = 0x1.8p23f;

// p * 2^n for -160 <= n <= 130, rounded once: in two steps, because 2^n may be out of range.
RHEA_INLINE f32x16 scale_by_power(f32x16 p, i32x16 n) {
  const i32x16 half = n >> 1;
  return p * bits_as<f32x16>((half + 127) << 23) * bits_as<f32x16>((n - half + 127) << 23);
}

// e^x; 1 ulp. exp(-inf) = 0, exp(inf) = inf, NaN stays.
RHEA_INLINE f32x16 exp(f32x16 x) {
  x = select(x < -104.0f, splat(-104.0f), x);
  x = select(x > 89.0f, splat(89.0f), x);
  const f32x16 shifted = fma(x, 0x1.715476p0f, splat(kRoundMagic));
  const i32x16 n = bits_as<i32x16>(shifted) - bits_as<i32x16>(splat(kRoundMagic));
  const f32x16 whole = shifted - kRoundMagic;
  f32x16 r = fma(whole, -0x1.62e43p-1f, x);
  r = fma(whole, 0x1.05c61p-29f, r);
  f32x16 p = fma(splat(1.381314232e-03f), r, 8.369418795e-03f);
  p = fma(p, r, 4.166845682e-02f);
  p = fma(p, r, 1.666651479e-01f);
  p = fma(p, r, 4.999999305e-01f);
  p = fma(p, r * r, r) + 1.0f;
  return scale_by_power(p, n);
}

// 2^x; 1 ulp.
RHEA_INLINE f32x16 exp2(f32x16 x) {
  x = select(x < -151.0f, splat(-151.0f), x);
  x = select(x > 129.0f, splat(129.0f), x);
  const f32x16 shifted = x + kRoundMagic;
  const i32x16 n = bits_as<i32x16>(shifted) - bits_as<i32x16>(splat(kRoundMagic));
  const f32x16 r = x - (shifted - kRoundMagic);
  f32x16 p = fma(splat(1.559873507e-04f), r, 1.340818443e-03f);
  p = fma(p, r, 9.617674331e-03f);
  p = fma(p, r, 5.550306272e-02f);
  p = fma(p, r, 2.402265292e-01f);
  p = fma(p, r, 6.931472172e-01f);
  return scale_by_power(fma(p, r, 1.0f), n);
}

// Natural logarithm; 1 ulp. log(0) = -inf, NaN below zero.
RHEA_INLINE f32x16 log(f32x16 x) {
  const i32x16 tiny = x < 0x1p-126f;
  const f32x16 normal = select(tiny, x * 0x1p23f, x);
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2))
  // Unsigned: the bits of NaN and of negative numbers wrap around.
  const i32x16 bits = bits_as<i32x16>(bits_as<u32x16>(normal) - 0x3f3504f3U);
  const i32x16 e = (bits >> 23) - (tiny & 23);
  const f32x16 f = bits_as<f32x16>((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
  f32x16 p = fma(splat(7.105215158e-02f), f, -1.196210027e-01f);
  p = fma(p, f, 1.188637963e-01f);
  p = fma(p, f, -1.235897363e-01f);
  p = fma(p, f, 1.421344680e-01f);
  p = fma(p, f, -1.667034890e-01f);
  p = fma(p, f, 2.000251111e-01f);
  p = fma(p, f, -2.499997360e-01f);
  p = fma(p, f, 3.333330652e-01f);
  const f32x16 power = __builtin_convertvector(e, f32x16);
  const f32x16 square = f * f;
  f32x16 y = fma(p * f, square, power * -2.12194440e-4f);
  y = fma(square, -0.5f, y) + f;
  y = fma(power, 0.693359375f, y);
  y = select(x == __builtin_inff(), x, y);
  y = select(x == 0.0f, splat(-__builtin_inff()), y);
  return select((x < 0.0f) | (x != x), splat(__builtin_nanf("")), y);
}

// 2 ulp.
RHEA_INLINE f32x16 tanh(f32x16 x) {
  const f32x16 a = abs(x);
  const f32x16 s = x * x;
  f32x16 p = fma(splat(-5.666979816e-03f), s, 2.060617925e-02f);
  p = fma(p, s, -5.373000798e-02f);
  p = fma(p, s, 1.333133101e-01f);
  p = fma(p, s, -3.333327806e-01f);
  const f32x16 small = fma(p * s, x, x);
  const f32x16 large = copy_sign(1.0f - 2.0f / (exp(a + a) + 1.0f), x);
  return select(a < 0.625f, small, select(x != x, x, large));
}

// 1 / (1 + e^-x); 3 ulp. The exponential never overflows, so that small results are right too.
RHEA_INLINE f32x16 logistic(f32x16 x) {
  const f32x16 e = exp(-abs(x));
  return select(x < 0.0f, e, splat(1.0f)) / (1.0f + e);
}

// Error function; 2 ulp.
RHEA_INLINE f32x16 erf(f32x16 x) {
  const f32x16 a = abs(x);
  const f32x16 s = x * x;
  f32x16 p = fma(splat(8.316795268e-05f), s, -8.130017721e-04f);
  p = fma(p, s, 5.199907143e-03f);
  p = fma(p, s, -2.685894171e-02f);
  p = fma(p, s, 1.128368719e-01f);
  p = fma(p, s, -3.761263319e-01f);
  p = fma(p, s, 1.28379167e-01f);
  const f32x16 small = fma(p, x, x);
  // erfc(a) = exp(-q(a)); from 4 on erf is 1 in f32
  const f32x16 t = select(a > 4.0f, splat(4.0f), a);
  f32x16 q = fma(splat(2.109496434e-05f), t, -4.344616766e-04f);
  q = fma(q, t, 4.171058723e-03f);
  q = fma(q, t, -2.511941667e-02f);
  q = fma(q, t, 1.082800737e-01f);
  q = fma(q, t, 6.333469198e-01f);
  q = fma(q, t, 1.129514924e+00f);
  q = fma(q, t, -1.746831891e-04f);
  const f32x16 large = copy_sign(1.0f - exp(-q), x);
  return select(a < 0.93f, small, select(x != x, x, large));
}

// Lane by lane through the C library in f64: rare in models, and right for huge arguments.
RHEA_INLINE f32x16 sine(f32x16 x) {
  f32x16 y;
  for (int i = 0; i < 16; ++i) y[i] = static_cast<float>(__builtin_sin(static_cast<double>(x[i])));
  return y;
}
RHEA_INLINE f32x16 cosine(f32x16 x) {
  f32x16 y;
  for (int i = 0; i < 16; ++i) y[i] = static_cast<float>(__builtin_cos(static_cast<double>(x[i])));
  return y;
}
RHEA_INLINE f32x16 power(f32x16 a, f32x16 b) {
  f32x16 y;
  for (int i = 0; i < 16; ++i) {
    y[i] = static_cast<float>(__builtin_pow(static_cast<double>(a[i]), static_cast<double>(b[i])));
  }
  return y;
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
