// The vector kernel of rope (rope_rows.cpp, compiled once per instruction set).
#pragma once
#include <stdint.h>

namespace rhea::ops {

// Tokens [begin, end) with their heads; strides in elements. dtype: 0 f32, 1 bf16, 2 f16.
struct RopeRows {
  int dtype;
  bool interleaved, inverse;
  int64_t begin, end, heads, width, pairs;
  const void* x;
  int64_t x_stride;
  const float *cos, *sin;  // [positions][pairs]
  const int32_t* positions;
  void* y;
  int64_t y_stride;
};

}  // namespace rhea::ops

#define RHEA_DECLARE_ROPE(isa)          \
  namespace rhea::isa {                 \
  void rope_rows(const ops::RopeRows&); \
  }
RHEA_DECLARE_ROPE(isa_plain)
RHEA_DECLARE_ROPE(isa_avx2)
RHEA_DECLARE_ROPE(isa_avx512)
RHEA_DECLARE_ROPE(isa_avx512_bf16)
#undef RHEA_DECLARE_ROPE
