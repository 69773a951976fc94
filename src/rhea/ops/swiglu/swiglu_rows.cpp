// swiglu by vectors: y = round(g s) u; du = dy round(g s), dg = dy u s (1 + g (1 - s)).
#include "rhea/ops/swiglu/swiglu_rows.h"

#include "rhea/ops/row_vector.h"
#include "rhea/ops/simd_math.h"

namespace rhea::RHEA_ISA_NAMESPACE {
namespace {

#if RHEA_ISA >= 2
// 1 / (1 + 2^t), t = -x log2(e), with the instructions that split and join exponents: a third of
// the work of logistic() in simd_math.h. Relative error 2e-7 for |x| < 1, 1e-7 |x| beyond.
RHEA_INLINE f32x16 sigmoid(f32x16 x) {
  const __m512 limit = _mm512_set1_ps(150.0f), low = _mm512_set1_ps(-150.0f);
  __m512 t = (__m512)(x * -1.44269504f);
  t = _mm512_max_ps(low, _mm512_min_ps(limit, t));  // NaN stays
  const __m512 n = _mm512_roundscale_ps(t, 8);
  const f32x16 r = (f32x16)_mm512_sub_ps(t, n);
  f32x16 p = fma(splat(1.559873507e-04f), r, 1.340818443e-03f);
  p = fma(p, r, 9.617674331e-03f);
  p = fma(p, r, 5.550306272e-02f);
  p = fma(p, r, 2.402265292e-01f);
  p = fma(p, r, 6.931472172e-01f);
  p = fma(p, r, 1.0f);
  return 1.0f / (1.0f + (f32x16)_mm512_scalef_ps((__m512)p, n));
}
#else
RHEA_INLINE f32x16 sigmoid(f32x16 x) { return logistic(x); }
#endif

template <class E>
const char* row_at(const void* base, int64_t stride, int64_t row) {
  return static_cast<const char*>(base) + row * stride * E::kBytes;
}
template <class E>
char* row_at(void* base, int64_t stride, int64_t row) {
  return static_cast<char*>(base) + row * stride * E::kBytes;
}

template <class E>
void forward(const ops::SwigluRows& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    const char *gate = row_at<E>(a.gate, a.gate_stride, row),
               *up = row_at<E>(a.up, a.up_stride, row);
    char* y = row_at<E>(a.out[0], a.out_stride[0], row);
    for_vectors(
        a.width, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
          const f32x16 g = E::load(gate, i, n);
          E::store(y, i, E::round(g * sigmoid(g)) * E::load(up, i, n), n);
        });
  }
}

template <class E>
void backward(const ops::SwigluRows& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    const char *gate = row_at<E>(a.gate, a.gate_stride, row),
               *up = row_at<E>(a.up, a.up_stride, row);
    const char* dy = row_at<E>(a.dy, a.dy_stride, row);
    char* dgate = row_at<E>(a.out[0], a.out_stride[0], row);
    char* dup = row_at<E>(a.out[1], a.out_stride[1], row);
    for_vectors(
        a.width, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
          const f32x16 g = E::load(gate, i, n), u = E::load(up, i, n), d = E::load(dy, i, n);
          const f32x16 s = sigmoid(g);
          E::store(dgate, i, d * u * (s * (1.0f + g * (1.0f - s))), n);
          E::store(dup, i, d * E::round(g * s), n);
        });
  }
}

}  // namespace

void swiglu_rows(const ops::SwigluRows& a) {
  with_element(a.dtype, [&](auto element) { forward<decltype(element)>(a); });
}
void swiglu_grad_rows(const ops::SwigluRows& a) {
  with_element(a.dtype, [&](auto element) { backward<decltype(element)>(a); });
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
