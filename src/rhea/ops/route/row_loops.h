// The loops of dispatch, combine and slot_dots over one row (row_loops.cpp, compiled once per
// instruction set). Sums are f32.
#pragma once
#include <stdint.h>

namespace rhea::ops {

struct RowLoops {
  // to = weight * from, rounded
  void (*scale)(const void* from, double weight, void* to, int64_t n);
  // sum += weight * from
  void (*add)(const void* from, double weight, void* sum, int64_t n);
  // to = sum, rounded
  void (*store)(const void* sum, void* to, int64_t n);
  double (*dot)(const void* x, const void* y, int64_t n);
};

}  // namespace rhea::ops

// Index: dtype f32 0, bf16 1, f16 2.
#define RHEA_DECLARE_ROW_LOOPS(isa)        \
  namespace rhea::isa {                    \
  extern const ops::RowLoops kRowLoops[3]; \
  }
RHEA_DECLARE_ROW_LOOPS(isa_plain)
#if defined(__x86_64__)
RHEA_DECLARE_ROW_LOOPS(isa_avx2)
RHEA_DECLARE_ROW_LOOPS(isa_avx512)
#endif
#undef RHEA_DECLARE_ROW_LOOPS
