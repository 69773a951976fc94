// swiglu by vectors: y = round(g s) u; du = dy round(g s), dg = dy u s (1 + g (1 - s)).
#include "rhea/ops/swiglu/swiglu_rows.h"

#include "rhea/ops/row_vector.h"
#include "rhea/ops/simd_math.h"

namespace rhea::RHEA_ISA_NAMESPACE {
namespace {

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
          E::store(y, i, E::round(g * logistic(g)) * E::load(up, i, n), n);
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
          const f32x16 s = logistic(g);
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
