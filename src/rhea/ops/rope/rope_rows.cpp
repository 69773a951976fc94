// rope by vectors: (a, b) -> (a cos - b sin, a sin + b cos). All elements of a vector of pairs are
// read before any is written, so y may be x.
#include "rhea/ops/rope/rope_rows.h"

#include "rhea/ops/row_vector.h"

namespace rhea::RHEA_ISA_NAMESPACE {
namespace {

// Lanes of 32 neighbours by even and odd index, and back.
RHEA_INLINE f32x16 even_lanes(f32x16 low, f32x16 high) {
  return __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28,
                                 30);
}
RHEA_INLINE f32x16 odd_lanes(f32x16 low, f32x16 high) {
  return __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29,
                                 31);
}
RHEA_INLINE f32x16 zip_low(f32x16 even, f32x16 odd) {
  return __builtin_shufflevector(even, odd, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
RHEA_INLINE f32x16 zip_high(f32x16 even, f32x16 odd) {
  return __builtin_shufflevector(even, odd, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30,
                                 15, 31);
}
RHEA_INLINE int64_t at_most(int64_t n, int64_t limit) { return n < limit ? n : limit; }

template <class E, bool kInterleaved>
void rotate_head(const ops::RopeRows& a, const char* x, const float* cos, const float* sin,
                 char* y) {
  for_vectors(
      a.pairs, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
        const f32x16 c = ElementF32::load(cos, i, n);
        f32x16 s = ElementF32::load(sin, i, n);
        if (a.inverse) s = -s;
        if constexpr (kInterleaved) {
          const int64_t low = at_most(2 * n, kLanes), high = 2 * n - low;
          const f32x16 v0 = E::load(x, 2 * i, low), v1 = E::load(x, 2 * i + low, high);
          const f32x16 p = even_lanes(v0, v1), q = odd_lanes(v0, v1);
          const f32x16 y0 = p * c - q * s, y1 = p * s + q * c;
          E::store(y, 2 * i, zip_low(y0, y1), low);
          E::store(y, 2 * i + low, zip_high(y0, y1), high);
        } else {
          const f32x16 p = E::load(x, i, n), q = E::load(x, i + a.pairs, n);
          E::store(y, i, p * c - q * s, n);
          E::store(y, i + a.pairs, p * s + q * c, n);
        }
      });
  if (x == y) return;
  for_vectors(
      a.width - 2 * a.pairs, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
        E::store(y, 2 * a.pairs + i, E::load(x, 2 * a.pairs + i, n), n);
      });
}

// Two heads of 16 elements at a time: 16 pairs fill a vector, 8 would leave half of it empty.
RHEA_INLINE f32x16 low_halves(f32x16 a, f32x16 b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
}
RHEA_INLINE f32x16 high_halves(f32x16 a, f32x16 b) {
  return __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30,
                                 31);
}
template <class E, bool kInterleaved>
RHEA_INLINE void rotate_two_heads(const char* x, f32x16 c, f32x16 s, char* y) {
  const f32x16 v0 = E::load(x, 0, kLanes), v1 = E::load(x, kLanes, kLanes);
  const f32x16 p = kInterleaved ? even_lanes(v0, v1) : low_halves(v0, v1),
               q = kInterleaved ? odd_lanes(v0, v1) : high_halves(v0, v1);
  const f32x16 y0 = p * c - q * s, y1 = p * s + q * c;
  E::store(y, 0, kInterleaved ? zip_low(y0, y1) : low_halves(y0, y1), kLanes);
  E::store(y, kLanes, kInterleaved ? zip_high(y0, y1) : high_halves(y0, y1), kLanes);
}
// The heads of one token; returns how many are done.
template <class E>
RHEA_INLINE int64_t rotate_pairs_of_heads(const ops::RopeRows& a, const char* x, const float* cos,
                                          const float* sin, char* y) {
  const f32x16 c8 = load_n(cos, 8), s8 = load_n(sin, 8);
  const f32x16 c = low_halves(c8, c8), s = a.inverse ? -low_halves(s8, s8) : low_halves(s8, s8);
  int64_t head = 0;
  for (; head + 2 <= a.heads; head += 2) {
    const int64_t at = head * 16 * E::kBytes;
    if (a.interleaved)
      rotate_two_heads<E, true>(x + at, c, s, y + at);
    else
      rotate_two_heads<E, false>(x + at, c, s, y + at);
  }
  return head;
}

template <class E>
void rotate(const ops::RopeRows& a) {
  for (int64_t token = a.begin; token < a.end; ++token) {
    const int64_t table = a.positions[token] * a.pairs;
    const char* x = static_cast<const char*>(a.x) + token * a.x_stride * E::kBytes;
    char* y = static_cast<char*>(a.y) + token * a.y_stride * E::kBytes;
    int64_t head = 0;
    if (a.width == 16 && a.pairs == 8)
      head = rotate_pairs_of_heads<E>(a, x, a.cos + table, a.sin + table, y);
    for (; head < a.heads; ++head) {
      const int64_t at = head * a.width * E::kBytes;
      if (a.interleaved)
        rotate_head<E, true>(a, x + at, a.cos + table, a.sin + table, y + at);
      else
        rotate_head<E, false>(a, x + at, a.cos + table, a.sin + table, y + at);
    }
  }
}

}  // namespace

void rope_rows(const ops::RopeRows& a) {
  with_element(a.dtype, [&](auto element) { rotate<decltype(element)>(a); });
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
