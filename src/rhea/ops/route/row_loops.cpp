// Rows by vectors; products and sums round one by one, so that every instruction set has the same
// bits.
#include "rhea/ops/route/row_loops.h"

#include "rhea/ops/row_vector.h"

namespace rhea::RHEA_ISA_NAMESPACE {
namespace {

template <class E>
void scale(const void* from, double weight, void* to, int64_t n) {
  const f32x16 w = splat(static_cast<float>(weight));
  for_vectors(
      n, [&](int64_t i, int64_t count) __attribute__((always_inline)) {
        E::store(to, i, w * E::load(from, i, count), count);
      });
}

template <class E>
void add(const void* from, double weight, void* sum, int64_t n) {
  const f32x16 w = splat(static_cast<float>(weight));
  for_vectors(
      n, [&](int64_t i, int64_t count) __attribute__((always_inline)) {
        ElementF32::store(sum, i, ElementF32::load(sum, i, count) + w * E::load(from, i, count),
                          count);
      });
}

template <class E>
void store(const void* sum, void* to, int64_t n) {
  for_vectors(
      n, [&](int64_t i, int64_t count) __attribute__((always_inline)) {
        E::store(to, i, ElementF32::load(sum, i, count), count);
      });
}

template <class E>
double dot(const void* x, const void* y, int64_t n) {
  f32x16 sum = splat(0);
  for_vectors(
      n, [&](int64_t i, int64_t count) __attribute__((always_inline)) {
        sum += E::load(x, i, count) * E::load(y, i, count);
      });
  return static_cast<double>(sum_lanes(sum));
}

template <class E>
constexpr ops::RowLoops loops() {
  return {scale<E>, add<E>, store<E>, dot<E>};
}

}  // namespace

extern const ops::RowLoops kRowLoops[3];
constexpr ops::RowLoops kRowLoops[3] = {loops<ElementF32>(), loops<ElementBf16>(),
                                        loops<ElementF16>()};

}  // namespace rhea::RHEA_ISA_NAMESPACE
