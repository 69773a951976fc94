// The vector kernels of the norms (rms_norm_rows.cpp, layer_norm_rows.cpp, compiled once per
// instruction set).
#pragma once
#include <stdint.h>

namespace rhea::ops {

// Rows of tokens [begin, end): token t has `per_token` rows of `width` elements, side by side.
// Strides (of tokens) in elements. dtype: 0 f32, 1 bf16, 2 f16; with in_tiles everything lies as
// f32 values of that type, and results are rounded by the caller.
struct NormRows {
  int dtype;
  bool in_tiles;
  int64_t begin, end, per_token, width;
  float eps, offset;
  const void *x, *w, *b, *dy;  // w and b: null where the node has none; dy: gradient only
  int64_t x_stride, dy_stride;
  void* y;  // or dx
  int64_t y_stride;
  float *dw, *db;  // sums over these rows are added here; null: not wanted
};

}  // namespace rhea::ops

#define RHEA_DECLARE_NORM(isa)                     \
  namespace rhea::isa {                            \
  void rms_norm_rows(const ops::NormRows&);        \
  void rms_norm_grad_rows(const ops::NormRows&);   \
  void layer_norm_rows(const ops::NormRows&);      \
  void layer_norm_grad_rows(const ops::NormRows&); \
  }
RHEA_DECLARE_NORM(isa_plain)
RHEA_DECLARE_NORM(isa_avx2)
RHEA_DECLARE_NORM(isa_avx512)
RHEA_DECLARE_NORM(isa_avx512_bf16)
#undef RHEA_DECLARE_NORM
