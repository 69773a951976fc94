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
  bool add = false;         // to what c holds, which is f32 then
  char* scratch = nullptr;  // of bf16 operands: rows_scratch_bytes()
  // What the caller packs into a panel after this block: rows of 256 bytes, brought towards the
  // core meanwhile. They lie too far apart for the hardware to foresee.
  const char* next = nullptr;
  int64_t next_stride = 0, next_rows = 0;
};
// A longer panel (64 columns by 4 bytes by steps) would leave L2 while the rows pass by it; the
// reduction is cut into that many equal parts, each of which adds to the result.
inline constexpr int64_t kPartSteps = 1536;
constexpr int64_t parts_of(int64_t steps) {
  return steps <= kPartSteps ? 1 : (steps + kPartSteps - 1) / kPartSteps;
}
// Distance between rows of f32 in scratch, a cache line more than a row: rows a power of two apart
// would meet in few sets of the cache.
constexpr int64_t f32_row(int64_t k) { return (k + 15) / 16 * 16 + 16; }  // floats
// Bytes of RowsBlock::scratch for bf16 operands: partial sums of a result in bf16 and, where the
// kernels do not multiply bf16, the rows and one panel in f32.
constexpr int64_t rows_scratch_bytes(Isa isa, int64_t rows, int64_t k) {
  const int64_t sums = rows * 64 * 4;
  return multiplies_bf16(isa) ? sums : sums + rows * f32_row(k) * 4 + (k + 1) * 64 * 4;
}
// Rows by columns of C = A^T B in f32, both operands packed: A in strips of 16 rows.
struct StripBlock {
  const uint32_t* strips;
  int64_t rows, k;  // of the result; of the reduction, at most kStripSteps steps
  const char* panels;
  int64_t panel_bytes, columns;
  float* c;
  int64_t ldc;
  bool add;           // to what c holds
  bool stay_on_rows;  // the panels are few and stay in L2 while the strips pass by, or the reverse
  double* squares = nullptr;  // not null: gets the sum of the squares of c
};
// Longest reduction of a StripBlock, in steps of one f32 or two bf16: a strip must stay in L2.
inline constexpr int64_t kStripSteps = 1024;
// Strips are packed two at a time: four gave SmolLM2 nine items for its 576 x 576, so that two
// threads waited for a tenth of it (73 against 92 % of the peak). They lie a few cache lines more
// than their length apart: a power of two apart they would meet in few sets of the cache.
inline constexpr int64_t kRowsPerStrip = 32;
constexpr int64_t strip_words(int64_t steps) { return steps * 16 + 64; }
constexpr int64_t strip_bytes(int64_t steps) { return kRowsPerStrip / 16 * strip_words(steps) * 4; }

// What plans say of the items of a weight gradient.
constexpr const char* items_note(bool items_are_panels) {
  static_assert(kRowsPerStrip == 32);
  return items_are_panels ? "64 columns by all rows an item, left operand packed first"
                          : "32 rows by all columns an item, right operand packed first";
}

// 32 columns of a row-major matrix of k rows, `stride` bytes apart, as two strips; missing columns
// are zero.
using PackStripsFn = void (*)(const char* src, int64_t stride, int64_t columns, int64_t k,
                              uint32_t* strips);

// One panel of 64 columns from a row-major matrix whose rows are `ld` elements apart.
using PackPanelFn = void (*)(const void* src, int64_t ld, int64_t columns, int64_t k, int64_t depth,
                             void* panel);

// Index 0: 4-byte elements (f32), 1: 2-byte elements (bf16), 2: bf16 that is packed as f32.
inline constexpr int kWidened = 2;
struct Packers {
  PackPanelFn nk[3];
  PackPanelFn kn[3];
  PackStripsFn strips[3];
};

struct PanelKernels {
  Packers cached;
  // With stores past the caches, for what nobody reads soon or all threads read: it must lie on
  // cache lines. What another die holds is not asked back first, which took as long as a tenth of a
  // weight gradient of 768 x 768.
  Packers streamed;
  // Index 0 f32, 1 bf16. Strips of bf16 are multiplied by instruction sets that multiply bf16, and
  // null elsewhere: what they multiply is packed widened.
  void (*rows[2])(const RowsBlock& block);
  void (*strip[2])(const StripBlock& block);
};
const PanelKernels& panel_kernels(Isa isa);

}  // namespace rhea::ops
