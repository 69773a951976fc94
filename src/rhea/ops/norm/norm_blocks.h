// How the normalisation kernels cut their rows, and how they sum weight gradients.
//
// Tokens are cut into blocks. A gradient kernel adds the rows of each block, in order, to a partial
// sum of its own (phase 0); phase 1 adds the partial sums pairwise, always in the same tree. Number
// and size of the blocks follow from the shapes, so the bits do not depend on threads.
#pragma once
#include <algorithm>

#include "rhea/ir/attr.h"
#include "rhea/ir/cpu_kernel.h"
#include "rhea/ops/element.h"
#include "rhea/ops/norm/norm_rows.h"

namespace rhea::ops {

inline constexpr int64_t kMaxPartials = 64;    // blocks of a gradient kernel
inline constexpr int64_t kColumnChunk = 1024;  // columns of one item of phase 1

struct NormState {
  Rows rows;
  int64_t block_tokens = 1;
  int64_t num_blocks = 0;
  int num_sums = 0;  // weight-like gradients: partial sums per block
  double eps = 0, offset = 0;
  bool has_weight = true, has_bias = false;
  DType dtype = DType::f32;
  void (*rows_kernel)(const NormRows&) = nullptr;  // of the vector kernels

  // Partial sums lie as [num_sums][num_blocks][width padded to a cache line].
  int64_t padded_width() const { return round_up(rows.width, 16); }
  template <class A>
  A* partial(const ir::KernelArgs& args, int64_t block, int sum) const {
    return static_cast<A*>(args.workspace) + (sum * num_blocks + block) * padded_width();
  }
};

// f(token, offset of the row inside the token) for every row of blocks [begin, end).
template <class F>
void for_rows(const NormState& state, int64_t begin, int64_t end, F&& f) {
  const int64_t last = std::min(end * state.block_tokens, state.rows.tokens);
  for (int64_t token = begin * state.block_tokens; token < last; ++token)
    for (int64_t row = 0; row < state.rows.per_token; ++row) f(token, row * state.rows.width);
}

// Phase 1: out = sum over blocks of partial sums `sum`, for column chunks [begin, end).
template <class A>
void sum_partials(const ir::KernelArgs& args, const NormState& state, A* out, int sum) {
  const int64_t first = args.begin * kColumnChunk;
  const int64_t last = std::min(args.end * kColumnChunk, state.rows.width);
  if (state.num_blocks == 0) {
    std::fill(out + first, out + last, A{0});
    return;
  }
  for (int64_t step = 1; step < state.num_blocks; step *= 2)
    for (int64_t block = 0; block + step < state.num_blocks; block += 2 * step) {
      A* into = state.partial<A>(args, block, sum);
      const A* from = state.partial<A>(args, block + step, sum);
      for (int64_t i = first; i < last; ++i) into[i] += from[i];
    }
  std::copy(state.partial<A>(args, 0, sum) + first, state.partial<A>(args, 0, sum) + last,
            out + first);
}

// Grid and state of a forward kernel: x may be normalised in place and may be strided. A vector
// kernel gives the function that does its rows.
ir::KernelPlan plan_norm(const ir::OpInstance& op, void (*rows_kernel)(const NormRows&) = nullptr);
// The same for a gradient kernel. `strided` are the operands beside x that have x's shape; dx may
// take the place of any of them.
ir::KernelPlan plan_norm_grad(const ir::OpInstance& op, std::initializer_list<int> strided,
                              int num_sums, void (*rows_kernel)(const NormRows&) = nullptr);

// KernelPlan::run of the vector kernels, rms_norm and layer_norm alike.
void run_norm_rows(const ir::KernelArgs& args);
void run_norm_grad_rows(const ir::KernelArgs& args);

}  // namespace rhea::ops
