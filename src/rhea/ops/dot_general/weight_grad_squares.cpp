// Row of weight_grad_squares: the gradient of a linear layer's weight with its part of the global
// norm, so that the norm need not read the gradient again.
#include "rhea/base/error.h"
#include "rhea/ops/dot_general/product.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {
namespace {

using ir::Attrs;
using ir::OpInstance;
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
  const ir::Cost product = weight_gradient_cost(node);
  return {product.flops + 2.0 * static_cast<double>(ir::num_elements(node.out[0].shape)),
          product.bytes};
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
    .samples = [] { return weight_gradient_samples(false); },
};

}  // namespace rhea::ops
