// Element types of row kernels: 16 elements at a time as f32. For kernel files (rules in simd.h).
#pragma once
#include "rhea/ops/simd.h"

namespace rhea::RHEA_ISA_NAMESPACE {

// Elements i .. i + n of a row, n <= 16; lanes past n load as zero.
struct ElementF32 {
  static constexpr int64_t kBytes = 4;
  RHEA_INLINE f32x16 load(const void* row, int64_t i, int64_t n) {
    const float* p = static_cast<const float*>(row) + i;
    return n >= kLanes ? rhea::RHEA_ISA_NAMESPACE::load(p) : load_n(p, n);
  }
  RHEA_INLINE void store(void* row, int64_t i, f32x16 v, int64_t n) {
    float* p = static_cast<float*>(row) + i;
    n >= kLanes ? rhea::RHEA_ISA_NAMESPACE::store(p, v) : store_n(p, v, n);
  }
  RHEA_INLINE f32x16 round(f32x16 v) { return v; }
};
struct ElementBf16 {
  static constexpr int64_t kBytes = 2;
  RHEA_INLINE f32x16 load(const void* row, int64_t i, int64_t n) {
    const uint16_t* p = static_cast<const uint16_t*>(row) + i;
    return n >= kLanes ? load_bf16(p) : load_bf16_n(p, n);
  }
  RHEA_INLINE void store(void* row, int64_t i, f32x16 v, int64_t n) {
    uint16_t* p = static_cast<uint16_t*>(row) + i;
    n >= kLanes ? store_bf16(p, v) : store_bf16_n(p, v, n);
  }
  RHEA_INLINE f32x16 round(f32x16 v) { return round_bf16(v); }
};
struct ElementF16 {
  static constexpr int64_t kBytes = 2;
  RHEA_INLINE f32x16 load(const void* row, int64_t i, int64_t n) {
    const uint16_t* p = static_cast<const uint16_t*>(row) + i;
    return n >= kLanes ? load_f16(p) : load_f16_n(p, n);
  }
  RHEA_INLINE void store(void* row, int64_t i, f32x16 v, int64_t n) {
    uint16_t* p = static_cast<uint16_t*>(row) + i;
    n >= kLanes ? store_f16(p, v) : store_f16_n(p, v, n);
  }
  RHEA_INLINE f32x16 round(f32x16 v) { return round_f16(v); }
};

// f(i, n) for the vectors of a row of `width` elements: n = 16 but for the last.
template <class F>
RHEA_INLINE void for_vectors(int64_t width, F&& f) {
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) f(i, kLanes);
  if (i < width) f(i, width - i);
}

// f(Element{}) for the DType (as integer) of a row kernel: f32 0, bf16 1, f16 2.
template <class F>
RHEA_INLINE void with_element(int dtype, F&& f) {
  if (dtype == 0)
    f(ElementF32{});
  else if (dtype == 1)
    f(ElementBf16{});
  else
    f(ElementF16{});
}

}  // namespace rhea::RHEA_ISA_NAMESPACE
