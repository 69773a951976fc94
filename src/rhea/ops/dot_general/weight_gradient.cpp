// What the rows share that compute the gradient of a linear layer's weight, a^T b in f32.
#include <fmt/core.h>

#include "rhea/base/error.h"
#include "rhea/ops/dot_general/product.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {

using ir::Layout;
using ir::Type;

Type weight_gradient_type(const Type& a, const Type& b) {
  if (a.rank() != 2 || b.rank() != 2 || a.dtype != b.dtype ||
      (a.dtype != DType::f32 && a.dtype != DType::bf16) || a.layout != Layout::row_major ||
      b.layout != Layout::row_major)
    throw Error("needs two matrices in rows, both f32 or both bf16, got {} and {}", to_string(a),
                to_string(b));
  if (a.shape[0] != b.shape[0])
    throw Error("dim 0 of both is summed and must be equal, got {} and {}", to_string(a),
                to_string(b));
  return {DType::f32, {a.shape[1], b.shape[1]}};
}

ir::Cost weight_gradient_cost(const ir::OpInstance& node) {
  const Product p = product_of(node);
  return {
      2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k),
      static_cast<double>(byte_size(node.in[0]) + byte_size(node.in[1]) + byte_size(node.out[0]))};
}

std::vector<ir::Sample> weight_gradient_samples(bool adds) {
  std::vector<ir::Sample> all;
  for (const DType t : {DType::f32, DType::bf16}) {
    const auto add = [&](const char* name, int64_t k, int64_t m, int64_t n) {
      ir::Sample sample{fmt::format("{}_{}", name, dtype_name(t)), {{{t, {k, m}}}, {{t, {k, n}}}}};
      if (adds) sample.inputs.push_back({{DType::f32, {m, n}}});
      sample.check_vjp = false;
      all.push_back(std::move(sample));
    };
    add("small", 9, 3, 7);
    add("tails", 203, 131, 70);
    add("wide", 203, 70, 131);
    // More tokens than are summed in one go, by rows and by columns.
    add("long", 2100, 70, 9);
    add("long_wide", 2100, 9, 70);
    add("blocks", 256, 192, 128);
    add("no_reduction", 0, 5, 3);
    add("empty", 4, 0, 3);
  }
  return all;
}

}  // namespace rhea::ops
