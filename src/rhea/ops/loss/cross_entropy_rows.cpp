// loss = logsumexp(x) - x[label], dx = scale (softmax(x) - onehot(label)), one row by vectors.
#include "rhea/ops/loss/cross_entropy_rows.h"

#include "rhea/ops/row_vector.h"
#include "rhea/ops/simd_math.h"

namespace rhea::RHEA_ISA_NAMESPACE {
namespace {

// Lanes behind the end of the row are -inf, whose exp is 0.
template <class E>
RHEA_INLINE f32x16 logits_at(const void* row, int64_t i, int64_t n) {
  const f32x16 x = E::load(row, i, n);
  return n == kLanes ? x
                     : select(lane_index() < static_cast<int32_t>(n), x, splat(-__builtin_inff()));
}

template <class E>
double row(const ops::CrossEntropyRow& r) {
  const int64_t width = r.vocabulary;
  // A NaN that the maximum passes over reaches the sum.
  f32x16 highest = splat(-__builtin_inff());
  for_vectors(
      width, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
        const f32x16 x = logits_at<E>(r.logits, i, n);
        highest = select(x > highest, x, highest);
      });
  const float max = max_lanes(highest);
  // In f64: a long row loses nothing.
  f64x8 low = {}, high = {};
  for_vectors(
      width, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
        const f32x16 e = exp(logits_at<E>(r.logits, i, n) - max);
        low += low_as_f64(e);
        high += high_as_f64(e);
      });
  const double sum = sum_lanes(low + high);
  // Before the gradient takes the place of the logits.
  const float at_label = r.label < 0 ? __builtin_nanf("") : E::load(r.logits, r.label, 1)[0];
  if (r.grad != nullptr) {
    const auto factor = static_cast<float>(static_cast<double>(r.grad_scale) / sum);
    for_vectors(
        width, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
          E::store(r.grad, i, exp(E::load(r.logits, i, n) - max) * factor, n);
        });
    if (r.label >= 0)
      E::store(r.grad, r.label, exp(splat(at_label - max)) * factor - r.grad_scale, 1);
  }
  return static_cast<double>(max) + __builtin_log(sum) - static_cast<double>(at_label);
}

}  // namespace

double cross_entropy_row(const ops::CrossEntropyRow& r) {
  double loss = 0;
  with_element(r.dtype, [&](auto element) { loss = row<decltype(element)>(r); });
  return loss;
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
