// The vector kernels of swiglu (swiglu_rows.cpp, compiled once per instruction set).
#pragma once
#include <stdint.h>

namespace rhea::ops {

// `rows` rows of `width` elements; strides in elements. dtype: 0 f32, 1 bf16, 2 f16.
struct SwigluRows {
  int dtype;
  int64_t rows, width;
  const void *gate, *up, *dy;  // dy: gradient only
  int64_t gate_stride, up_stride, dy_stride;
  void* out[2];  // y; or dgate, dup
  int64_t out_stride[2];
};

}  // namespace rhea::ops

#define RHEA_DECLARE_SWIGLU(isa)                 \
  namespace rhea::isa {                          \
  void swiglu_rows(const ops::SwigluRows&);      \
  void swiglu_grad_rows(const ops::SwigluRows&); \
  }
RHEA_DECLARE_SWIGLU(isa_plain)
RHEA_DECLARE_SWIGLU(isa_avx2)
RHEA_DECLARE_SWIGLU(isa_avx512)
RHEA_DECLARE_SWIGLU(isa_avx512_bf16)
#undef RHEA_DECLARE_SWIGLU
