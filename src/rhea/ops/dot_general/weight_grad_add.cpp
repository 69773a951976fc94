// Row of weight_grad_add: the gradient of a linear layer's weight added to that of the microbatches
// before, where it lies.
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
  const Product p = product_of(node);
  const double elements = static_cast<double>(p.m) * static_cast<double>(p.n);
  return {2.0 * elements * static_cast<double>(p.k) + elements,
          static_cast<double>(byte_size(node.in[0]) + byte_size(node.in[1]) +
                              2 * byte_size(node.out[0]))};
}

std::vector<Sample> samples() {
  std::vector<Sample> all;
  for (const DType t : {DType::f32, DType::bf16}) {
    const auto add = [&](const char* name, int64_t k, int64_t m, int64_t n) {
      all.push_back({fmt::format("{}_{}", name, dtype_name(t)),
                     {{{t, {k, m}}}, {{t, {k, n}}}, {{DType::f32, {m, n}}}},
                     {},
                     1,
                     false});
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

}  // namespace

const OpDef kWeightGradAdd{
    .name = "weight_grad_add",
    .infer = infer,
    .decompose = decompose,
    // Each part of a split reduction would add the third operand.
    .shard = [](const OpInstance&) { return std::string("!km,!kn,mn->mn"); },
    .cpu = weight_gradient_kernels(),
    .cost = cost,
    .samples = samples,
};

}  // namespace rhea::ops
