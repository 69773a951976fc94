// The matrix product that a dot_general node stands for, and the kernels that compute it.
//
// C[m,n] = sum over k of A(m,k) B(k,n), once per batch entry. A is stored [m,k] or, when its dim 0
// is contracted, [k,m]; B is stored [k,n], [n,k] (dim 1 contracted) or packed in panels.
#pragma once
#include <string>
#include <vector>

#include "rhea/ir/cpu_kernel.h"
#include "rhea/ir/op_def.h"
#include "rhea/ops/pack/layout.h"

namespace rhea::ops {

struct Product {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  bool a_transposed = false;  // A is stored [k,m]
  bool b_transposed = false;  // B is stored [n,k]; false for packed layouts
  ir::Layout b_layout = ir::Layout::row_major;
  DType in = DType::f32, out = DType::f32;
  int64_t rank = 2;

  // Elements between neighbouring rows of the stored matrices when they are contiguous.
  int64_t a_row() const { return a_transposed ? m : k; }
  int64_t b_row() const { return b_transposed ? k : n; }
};
Product product_of(const ir::OpInstance& node);

// Of a^T b in f32, the gradient of a linear layer's weight; throws if the two are no matrices in
// rows, both f32 or both bf16, of as many rows.
ir::Type weight_gradient_type(const ir::Type& a, const ir::Type& b);
// Of the product alone.
ir::Cost weight_gradient_cost(const ir::OpInstance& node);
// a [k,m], b [k,n] and, where the row adds, an f32 [m,n].
std::vector<ir::Sample> weight_gradient_samples(bool adds);
// Does the node, a dot_general, run on matrix tiles? They read the right operand in rows.
bool runs_on_tiles(const ir::OpInstance& node);

// Kernels, see their files.
ir::CpuKernel panel_product(Isa isa);
std::vector<ir::CpuKernel> weight_gradient_kernels();  // of rows with that result
ir::CpuKernel onednn_product();
// The same, for bf16 where the CPU multiplies it on matrix tiles (base/cpu_tiles.h).
ir::CpuKernel onednn_on_tiles();
ir::CpuKernel plain_product();

}  // namespace rhea::ops
