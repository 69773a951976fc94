// Reductions seen as [outer, reduced, inner] -> [outer, inner], declared for each instruction set.
#pragma once
#include "rhea/ir/cpu_kernel.h"
#include "rhea/ir/row_op.h"

namespace rhea::ops {

// The reduced dim is cut into chunks of a fixed size; each chunk is one item and leaves a partial
// result in the workspace, and a second phase joins the partials of an output in order. So the tree
// depends on the shape alone.
struct ReduceState {
  static constexpr int64_t kColumns = 256;  // inner elements of one item
  static constexpr int64_t kRun = 16384;    // neighbours of one chunk

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

// A kernel whose items are rows, on row tiles: S is its state, for f32.
template <class S>
struct RowKernel {
  void (*run)(const ir::KernelArgs&) = nullptr;
  S state;
};
template <class S>
void run_on_row_tile(const ir::RowTile& tile) {
  const auto& kernel = *static_cast<const RowKernel<S>*>(tile.state);
  const ir::Buffer in{const_cast<void*>(tile.in[0]), tile.width};  // only read
  const ir::Buffer out{tile.out[0], tile.width};
  kernel.run({.end = tile.rows, .in = &in, .out = &out, .state = &kernel.state});
}

}  // namespace rhea::ops
