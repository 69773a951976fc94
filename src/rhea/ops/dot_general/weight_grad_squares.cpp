// Row of weight_grad_squares: the gradient of a linear layer's weight with its part of the global
// norm, so that the norm need not read the gradient again.
#include <fmt/core.h>

#include "rhea/base/error.h"
#include "rhea/ops/dot_general/product.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {
namespace {

using ir::Attrs;
using ir::OpInstance;
using ir::Sample;
using ir::Type;

std::vector<Type> infer(std::span<const Type> in, const Attrs&) {
  if (in.size() != 2) throw Error("takes 2 operands, got {}", in.size());
  return {weight_gradient_type(in[0], in[1]), {DType::f64, {}}};
}

std::vector<Value> decompose(ir::Graph&, std::span<const Value> inputs, const Attrs&) {
  const Value dw = dot_general(inputs[0], inputs[1], 0, 0, DType::f32);
  const Value wide = convert(dw, DType::f64);
  return {dw, reduce_sum(multiply(wide, wide), {0, 1})};
}

ir::Cost cost(const OpInstance& node) {
  const Product p = product_of(node);
  const double elements = static_cast<double>(p.m) * static_cast<double>(p.n);
  return {
      2.0 * elements * static_cast<double>(p.k) + 2.0 * elements,
      static_cast<double>(byte_size(node.in[0]) + byte_size(node.in[1]) + byte_size(node.out[0]))};
}

std::vector<Sample> samples() {
  std::vector<Sample> all;
  for (const DType t : {DType::f32, DType::bf16}) {
    const auto add = [&](const char* name, int64_t k, int64_t m, int64_t n) {
      all.push_back({fmt::format("{}_{}", name, dtype_name(t)),
                     {{{t, {k, m}}}, {{t, {k, n}}}},
                     {},
                     1,
                     false});
    };
    add("small", 9, 3, 7);
    add("tails", 203, 131, 70);
    add("wide", 203, 70, 131);
    add("long", 2100, 9, 70);  // more tokens than are summed in one go
    add("blocks", 256, 192, 128);
    add("no_reduction", 0, 5, 3);
    add("empty", 4, 0, 3);
  }
  return all;
}

}  // namespace

const OpDef kWeightGradSquares{
    .name = "weight_grad_squares",
    .infer = infer,
    .decompose = decompose,
    // A split reduction leaves parts of dw, whose squares are not those of the sum; a split dw
    // leaves a part of the squares.
    .shard = [](const OpInstance&) { return std::string("!k!m,!k!n->!m!n,"); },
    .cpu = weight_gradient_kernels(),
    .cost = cost,
    .samples = samples,
};

}  // namespace rhea::ops
