// Sums over all rows of a tensor that do not depend on the number of threads, as gradients of the
// weights of norms are.
//
// Tokens (dim 0) are cut into blocks. The rows of a block are added, in order, to a partial sum of
// its own (first phase of a kernel); then the partial sums are added pairwise, always in the same
// tree (second phase). Number and size of the blocks follow from the shape alone.
#pragma once
#include <algorithm>

#include "rhea/ir/cpu_kernel.h"
#include "rhea/ops/element.h"

namespace rhea::ops {

struct RowSums {
  static constexpr int64_t kMaxBlocks = 64;
  static constexpr int64_t kBlockElements = 16384;  // at least, where there are so many
  static constexpr int64_t kColumns = 1024;         // of one item of the second phase

  int64_t block_tokens = 1, num_blocks = 0;
  int64_t width = 1;

  // Partial sums lie as [sum][block][width padded to a cache line] in the workspace.
  int64_t padded_width() const { return round_up(width, 16); }
  int64_t workspace_bytes(int num_sums, DType dtype) const {
    return num_sums * num_blocks * padded_width() * dtype_size(dtype);
  }
  int64_t column_items() const { return div_up(width, kColumns); }

  template <class A>
  A* partial(void* workspace, int64_t block, int sum) const {
    return static_cast<A*>(workspace) + (sum * num_blocks + block) * padded_width();
  }

  // Second phase: out = partial sums of `sum`, for column items [args.begin, args.end).
  template <class A>
  void join(const ir::KernelArgs& args, int sum, A* out) const {
    const int64_t first = args.begin * kColumns, last = std::min(args.end * kColumns, width);
    if (num_blocks == 0) {
      std::fill(out + first, out + last, A{0});
      return;
    }
    for (int64_t step = 1; step < num_blocks; step *= 2)
      for (int64_t block = 0; block + step < num_blocks; block += 2 * step) {
        A* into = partial<A>(args.workspace, block, sum);
        const A* from = partial<A>(args.workspace, block + step, sum);
        for (int64_t i = first; i < last; ++i) into[i] += from[i];
      }
    std::copy_n(partial<A>(args.workspace, 0, sum) + first, last - first, out + first);
  }
};

inline RowSums row_sums(const ir::Shape& shape) {
  const Rows rows = rows_of(shape);
  RowSums sums;
  sums.width = rows.width;
  sums.block_tokens =
      std::max(std::max<int64_t>(
                   1, RowSums::kBlockElements / std::max<int64_t>(rows.per_token * rows.width, 1)),
               div_up(rows.tokens, RowSums::kMaxBlocks));
  sums.num_blocks = div_up(rows.tokens, sums.block_tokens);
  return sums;
}

}  // namespace rhea::ops
