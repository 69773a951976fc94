// Reductions seen as [outer, reduced, inner] -> [outer, inner], declared for each instruction set.
#pragma once
#include "rhea/ir/cpu_kernel.h"

namespace rhea::ops {

// The reduced dim is cut into chunks of a fixed size; each chunk is one item and leaves a partial
// result in the workspace, and a second phase joins the partials of an output in order. So the tree
// depends on the shape alone.
struct ReduceState {
  static constexpr int64_t kColumns = 256;  // inner elements of one item

  int64_t outer = 1, reduced = 1, inner = 1;
  int64_t chunk = 1, num_chunks = 1, num_column_blocks = 1;
  bool max = false;  // else sum
  DType in = DType::f32, out = DType::f32;
};

}  // namespace rhea::ops

#define RHEA_DECLARE_REDUCE(isa)                  \
  namespace rhea::isa {                           \
  void run_reduce(const ir::KernelArgs& args);    \
  void run_softmax(const ir::KernelArgs& args);   \
  void run_logsumexp(const ir::KernelArgs& args); \
  }
RHEA_DECLARE_REDUCE(isa_plain)
#if defined(__x86_64__)
RHEA_DECLARE_REDUCE(isa_avx2)
RHEA_DECLARE_REDUCE(isa_avx512)
#endif

namespace rhea::ops {

// Rows of n elements of one type.
struct RowsState {
  static constexpr int64_t kBlockElements = 16384;  // an item holds rows of about so many elements
  int64_t rows = 0, n = 0, rows_per_item = 1;
  DType dtype = DType::f32;
};

}  // namespace rhea::ops
