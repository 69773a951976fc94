// LayerNorm by vectors (formulas in layer_norm.cpp). Mean and variance are summed in f64: with a
// mean far from zero the differences would cancel.
#include "rhea/ops/norm/row_walk.h"

namespace rhea::RHEA_ISA_NAMESPACE {
namespace {

struct Moments {
  float mean, inverse;
};

RHEA_INLINE f64x8 fold(f32x16 v) { return low_as_f64(v) + high_as_f64(v); }

template <class E>
RHEA_INLINE Moments moments(const ops::NormRows& a, const char* row) {
  const double width = static_cast<double>(a.width);
  f64x8 sum = {}, squares = {};
  for_vectors(
      a.width, [&](int64_t i, int64_t n)
                   __attribute__((always_inline)) { sum += fold(E::load(row, i, n)); });
  const double mean = sum_lanes(sum) / width;
  double tail = 0;
  for_vectors(
      a.width, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
        const f32x16 x = E::load(row, i, n);
        if (n == kLanes) {
          const f64x8 low = low_as_f64(x) - mean, high = high_as_f64(x) - mean;
          squares += low * low + high * high;
        } else {
          for (int64_t j = 0; j < n; ++j)
            tail += (static_cast<double>(x[j]) - mean) * (static_cast<double>(x[j]) - mean);
        }
      });
  const double variance = (sum_lanes(squares) + tail) / width;
  return {static_cast<float>(mean),
          static_cast<float>(1 / __builtin_sqrt(variance + static_cast<double>(a.eps)))};
}

template <class E>
void forward(const ops::NormRows& a) {
  for_row_groups<E>(a, [&](const RowGroup& group) {
    for (int r = 0; r < group.count; ++r) {
      const Moments m = moments<E>(a, group.x[r]);
      for_vectors(
          a.width, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
            f32x16 y = (E::load(group.x[r], i, n) - m.mean) * m.inverse;
            if (a.w) y = y * E::load(a.w, i, n);
            if (a.b) y = y + E::load(a.b, i, n);
            E::store(group.y[r], i, y, n);
          });
    }
  });
}

template <class E>
void backward(const ops::NormRows& a) {
  const float width = static_cast<float>(a.width);
  for_row_groups<E>(a, [&](const RowGroup& group) {
    for (int r = 0; r < group.count; ++r) {
      const char *x = group.x[r], *dy = group.dy[r];
      const Moments m = moments<E>(a, x);
      const auto scaled = [&](int64_t i, int64_t n) __attribute__((always_inline)) {
        const f32x16 g = E::load(dy, i, n);
        return a.w ? g * E::load(a.w, i, n) : g;
      };
      f32x16 sum_g = {}, sum_gn = {};
      for_vectors(
          a.width, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
            const f32x16 g = scaled(i, n);
            sum_g += g;
            sum_gn += g * ((E::load(x, i, n) - m.mean) * m.inverse);
          });
      const float mean_g = sum_lanes(sum_g) / width, mean_gn = sum_lanes(sum_gn) / width;
      for_vectors(
          a.width, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
            const f32x16 g = scaled(i, n), d = E::load(dy, i, n);
            const f32x16 normal = (E::load(x, i, n) - m.mean) * m.inverse;
            if (a.dw) ElementF32::store(a.dw, i, ElementF32::load(a.dw, i, n) + d * normal, n);
            if (a.db) ElementF32::store(a.db, i, ElementF32::load(a.db, i, n) + d, n);
            E::store(group.y[r], i, (g - mean_g - normal * mean_gn) * m.inverse, n);
          });
    }
  });
}

// Nothing is rounded inside, so that tiles are plain f32.
RHEA_INLINE int element_of(const ops::NormRows& a) { return a.in_tiles ? 0 : a.dtype; }

}  // namespace

void layer_norm_rows(const ops::NormRows& a) {
  with_element(element_of(a), [&](auto element) { forward<decltype(element)>(a); });
}
void layer_norm_grad_rows(const ops::NormRows& a) {
  with_element(element_of(a), [&](auto element) { backward<decltype(element)>(a); });
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
