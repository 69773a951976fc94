// Our own product loops, one copy per instruction set (panel_kernels.cpp is compiled once for
// each). They multiply by a right operand in panels and are the same code for every contraction:
// what is not in panels yet is packed first.
#pragma once
#include <cstdint>

#include "rhea/base/cpu_features.h"

namespace rhea::ops {

// A block of rows of C = A B, A in place. Strides of A in bytes.
struct RowsBlock {
  const char* a;
  int64_t a_stride, rows, k;
  const char* panels;   // first panel that is wanted
  int64_t panel_bytes;  // of one panel, padding included
  int64_t columns;      // wanted, from the start of the first panel
  void* c;
  int64_t ldc;  // elements
  bool bf16_result;
  float* scratch;  // rows * 64 floats
};
// A block of rows of C = A^T B in f32; A is stored [k, m] and its columns are packed into strips
// here.
struct StripBlock {
  const char* a;     // first column of the block
  int64_t a_stride;  // bytes
  int64_t rows, k;   // of the result; of the reduction, at most kStripSteps steps
  const char* panels;
  int64_t panel_bytes, columns;
  float* c;
  int64_t ldc;
  bool add;           // to what c holds
  uint32_t* scratch;  // kStripScratchBytes
};
// Rows of a StripBlock, at most.
inline constexpr int64_t kRowsPerStrip = 64;
// Longest reduction of a strip, in steps of one f32 or two bf16: the strip must stay in L2.
inline constexpr int64_t kStripSteps = 1024;
inline constexpr int64_t kStripScratchBytes = kRowsPerStrip / 16 * (kStripSteps * 16 + 64) * 4;

// One panel of 64 columns from a row-major matrix whose rows are `ld` elements apart.
using PackPanelFn = void (*)(const void* src, int64_t ld, int64_t columns, int64_t k, int64_t depth,
                             void* panel);

struct PanelKernels {
  // Index 0: 4-byte elements (f32), 1: 2-byte elements (bf16).
  PackPanelFn pack_nk[2];
  PackPanelFn pack_kn[2];
  // The same with stores past the caches, for panels that nobody reads soon; they must lie on
  // cache lines.
  PackPanelFn stream_nk[2];
  PackPanelFn stream_kn[2];
  void (*rows[2])(const RowsBlock& block);
  void (*strip[2])(const StripBlock& block);
};
const PanelKernels& panel_kernels(Isa isa);

}  // namespace rhea::ops
