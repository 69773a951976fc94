// RMSNorm by vectors (formulas in rms_norm.cpp).
#include "rhea/ops/norm/row_walk.h"

namespace rhea::RHEA_ISA_NAMESPACE {
namespace {

RHEA_INLINE f32x16 inverse_rms(const f32x16 (&squares)[kLanes], const ops::NormRows& a) {
  return rsqrt(sum_each(squares) / static_cast<float>(a.width) + a.eps);
}

// Elements of a tile: f32, with what is rounded inside rounded as E.
template <class E>
struct InTile : ElementF32 {
  RHEA_INLINE f32x16 round(f32x16 v) { return E::round(v); }
};

template <class F>
RHEA_INLINE void with_element_of(const ops::NormRows& a, F&& f) {
  with_element(
      a.dtype, [&](auto element) __attribute__((always_inline)) {
        using E = decltype(element);
        if (a.in_tiles)
          f(InTile<E>{});
        else
          f(E{});
      });
}

template <class E>
void forward(const ops::NormRows& a) {
  for_row_groups<E>(a, [&](const RowGroup& group) {
    f32x16 squares[kLanes] = {};
    for (int r = 0; r < group.count; ++r) {
      f32x16 sum = {};
      for_vectors(
          a.width, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
            const f32x16 x = E::load(group.x[r], i, n);
            sum += x * x;
          });
      squares[r] = sum;
    }
    const f32x16 inverse = inverse_rms(squares, a);
    for (int r = 0; r < group.count; ++r) {
      const f32x16 scale = splat(inverse[r]);
      for_vectors(
          a.width, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
            const f32x16 w = E::load(a.w, i, n) + a.offset;
            E::store(group.y[r], i, E::round(E::load(group.x[r], i, n) * scale) * w, n);
          });
    }
  });
}

template <class E>
void backward(const ops::NormRows& a) {
  for_row_groups<E>(a, [&](const RowGroup& group) {
    f32x16 squares[kLanes] = {}, dots[kLanes] = {};
    for (int r = 0; r < group.count; ++r) {
      f32x16 sum = {}, dot = {};
      for_vectors(
          a.width, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
            const f32x16 x = E::load(group.x[r], i, n);
            const f32x16 g = E::load(group.dy[r], i, n) * (E::load(a.w, i, n) + a.offset);
            sum += x * x;
            dot += x * g;
          });
      squares[r] = sum;
      dots[r] = dot;
    }
    const f32x16 inverse = inverse_rms(squares, a);
    const f32x16 means = sum_each(dots) * inverse / static_cast<float>(a.width);  // of g n
    for (int r = 0; r < group.count; ++r) {
      const f32x16 scale = splat(inverse[r]), mean = splat(means[r]);
      for_vectors(
          a.width, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
            const f32x16 dy = E::load(group.dy[r], i, n),
                         normal = E::load(group.x[r], i, n) * scale;
            const f32x16 g = dy * (E::load(a.w, i, n) + a.offset);
            const f32x16 dw = ElementF32::load(a.dw, i, n) + dy * E::round(normal);
            ElementF32::store(a.dw, i, dw, n);
            E::store(group.y[r], i, scale * (g - normal * mean), n);
          });
    }
  });
}

}  // namespace

void rms_norm_rows(const ops::NormRows& a) {
  with_element_of(a, [&](auto element) { forward<decltype(element)>(a); });
}
void rms_norm_grad_rows(const ops::NormRows& a) {
  with_element_of(a, [&](auto element) { backward<decltype(element)>(a); });
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
