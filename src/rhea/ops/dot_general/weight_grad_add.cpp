// Row of weight_grad_add: the gradient of a linear layer's weight added to that of the microbatches
// before, where it lies.
#include "rhea/base/error.h"
#include "rhea/ops/dot_general/product.h"
#include "rhea/ops/ops.h"

namespace rhea::ops {
namespace {

using ir::Attrs;
using ir::OpInstance;
using ir::Type;

std::vector<Type> infer(std::span<const Type> in, const Attrs&) {
  if (in.size() != 3) throw Error("takes 3 operands, got {}", in.size());
  Type sum = weight_gradient_type(in[0], in[1]);
  if (in[2] != sum)
    throw Error("the product of {} and {} is added to {}, got {}", to_string(in[0]),
                to_string(in[1]), to_string(sum), to_string(in[2]));
  return {sum};
}

std::vector<Value> decompose(ir::Graph&, std::span<const Value> inputs, const Attrs&) {
  return {inputs[2] + dot_general(inputs[0], inputs[1], 0, 0, DType::f32)};
}

ir::Cost cost(const OpInstance& node) {
  const ir::Cost product = weight_gradient_cost(node);
  return {product.flops + static_cast<double>(ir::num_elements(node.out[0].shape)),
          product.bytes + static_cast<double>(byte_size(node.out[0]))};
}

}  // namespace

const OpDef kWeightGradAdd{
    .name = "weight_grad_add",
    .infer = infer,
    .decompose = decompose,
    // Each part of a split reduction would add the third operand.
    .shard = [](const OpInstance&) { return std::string("!km,!kn,mn->mn"); },
    .cpu = weight_gradient_kernels(),
    .cost = cost,
    .samples = [] { return weight_gradient_samples(true); },
};

}  // namespace rhea::ops
