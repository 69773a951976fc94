// Functions of simd.h and simd_math.h over arrays, compiled once per instruction set for simd_test.
#include "rhea/ops/simd_math.h"

namespace rhea::RHEA_ISA_NAMESPACE {
namespace {

template <class F>
RHEA_INLINE void map(int64_t n, const float* x, float* y, F f) {
  for (int64_t i = 0; i < n; i += kLanes) store_n(y + i, f(load_n(x + i, n - i)), n - i);
}

}  // namespace

void test_unary(int function, int64_t n, const float* x, float* y) {
  switch (function) {
    case 0:
      return map(
          n, x, y, [](f32x16 v) __attribute__((always_inline)) { return exp(v); });
    case 1:
      return map(
          n, x, y, [](f32x16 v) __attribute__((always_inline)) { return exp2(v); });
    case 2:
      return map(
          n, x, y, [](f32x16 v) __attribute__((always_inline)) { return log(v); });
    case 3:
      return map(
          n, x, y, [](f32x16 v) __attribute__((always_inline)) { return tanh(v); });
    case 4:
      return map(
          n, x, y, [](f32x16 v) __attribute__((always_inline)) { return logistic(v); });
    case 5:
      return map(
          n, x, y, [](f32x16 v) __attribute__((always_inline)) { return erf(v); });
    case 6:
      return map(
          n, x, y, [](f32x16 v) __attribute__((always_inline)) { return rsqrt(v); });
    case 7:
      return map(
          n, x, y, [](f32x16 v) __attribute__((always_inline)) { return round_bf16(v); });
    default:
      return map(
          n, x, y, [](f32x16 v) __attribute__((always_inline)) { return round_f16(v); });
  }
}

void test_fma(int64_t n, const float* a, const float* b, const float* c, float* y) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t m = n - i;
    store_n(y + i, fma(load_n(a + i, m), load_n(b + i, m), load_n(c + i, m)), m);
  }
}

void test_across(const float* x, float* y) {
  y[0] = sum_lanes(load(x));
  y[1] = max_lanes(load(x));
  y[2] = static_cast<float>(sum_lanes(low_as_f64(load(x)) + high_as_f64(load(x))));
}

void test_sum_each(const float* x, float* y) {
  f32x16 vectors[16];
  for (int i = 0; i < 16; ++i) vectors[i] = load(x + 16 * i);
  store(y, sum_each(vectors));
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
