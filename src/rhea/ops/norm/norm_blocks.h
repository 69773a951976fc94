// How the normalisation kernels cut their rows: into blocks of tokens, those of a gradient kernel
// as ops/row_sums.h says.
#pragma once
#include <algorithm>

#include "rhea/ir/attr.h"
#include "rhea/ir/cpu_kernel.h"
#include "rhea/ir/op_def.h"
#include "rhea/ops/element.h"
#include "rhea/ops/norm/norm_rows.h"
#include "rhea/ops/row_sums.h"

namespace rhea::ops {

struct NormState {
  Rows rows;
  int64_t block_tokens = 1;
  RowSums sums;      // gradient kernels only
  int num_sums = 0;  // weight-like gradients: partial sums per block
  double eps = 0, offset = 0;
  bool has_weight = true, has_bias = false;
  bool grad = false;  // on row tiles
  DType dtype = DType::f32;
  void (*rows_kernel)(const NormRows&) = nullptr;  // of the vector kernels

  template <class A>
  A* partial(const ir::KernelArgs& args, int64_t block, int sum) const {
    return sums.partial<A>(args.workspace, block, sum);
  }
};

// f(token, offset of the row inside the token) for every row of blocks [begin, end).
template <class F>
void for_rows(const NormState& state, int64_t begin, int64_t end, F&& f) {
  const int64_t last = std::min(end * state.block_tokens, state.rows.tokens);
  for (int64_t token = begin * state.block_tokens; token < last; ++token)
    for (int64_t row = 0; row < state.rows.per_token; ++row) f(token, row * state.rows.width);
}

// Grid and state of a forward kernel: x may be normalised in place and may be strided. A vector
// kernel gives the function that does its rows.
ir::KernelPlan plan_norm(const ir::OpInstance& op, void (*rows_kernel)(const NormRows&) = nullptr);
// The same for a gradient kernel. `strided` are the operands beside x that have x's shape; dx may
// take the place of any of them.
ir::KernelPlan plan_norm_grad(const ir::OpInstance& op, std::initializer_list<int> strided,
                              int num_sums, void (*rows_kernel)(const NormRows&) = nullptr);

// The same kernels on row tiles. `roles` as in ir::RowPlan.
ir::RowPlan plan_norm_tile(const ir::OpInstance& op, std::string_view roles, bool grad,
                           void (*rows_kernel)(const NormRows&));

// KernelPlan::run of the vector kernels, rms_norm and layer_norm alike.
void run_norm_rows(const ir::KernelArgs& args);
void run_norm_grad_rows(const ir::KernelArgs& args);

}  // namespace rhea::ops
