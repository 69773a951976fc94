// Rounding of an f32 to the values of an 8-bit format, for kernels of every instruction set.
#pragma once
#include <cstdint>

namespace rhea::ops {

// e4m3: 4 bits of exponent, 3 of mantissa, no infinity, largest 448. e5m2: largest 57344.
enum class Float8 : int64_t { e4m3, e5m2 };

struct Float8Format {
  float largest;
  float smallest_normal;
  // 2^23 times the distance of subnormals: added and subtracted it rounds to their multiples.
  float subnormal_step;
  int dropped_bits;  // of an f32's mantissa
};

namespace {

inline constexpr Float8Format kFloat8Formats[] = {{448.0f, 0x1p-6f, 0x1p14f, 20},
                                                  {57344.0f, 0x1p-14f, 0x1p7f, 21}};

// To nearest, ties to even; what is beyond the largest value becomes it; NaN stays.
[[gnu::always_inline]] inline float round_float8(float x, const Float8Format& format) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  const uint32_t sign = bits & 0x80000000U;
  bits ^= sign;
  float size;
  __builtin_memcpy(&size, &bits, sizeof size);
  size = size > format.largest ? format.largest : size;
  const float subnormal = (size + format.subnormal_step) - format.subnormal_step;
  __builtin_memcpy(&bits, &size, sizeof bits);
  bits += (1U << (format.dropped_bits - 1)) - 1 + ((bits >> format.dropped_bits) & 1U);
  bits = bits >> format.dropped_bits << format.dropped_bits;
  float normal;
  __builtin_memcpy(&normal, &bits, sizeof normal);
  float rounded = size < format.smallest_normal ? subnormal : normal;
  rounded = size != size ? size : rounded;
  __builtin_memcpy(&bits, &rounded, sizeof bits);
  bits |= sign;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

}  // namespace
}  // namespace rhea::ops
