// What adam and adam_pack share: attributes, checks, the scalars of a step.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "rhea/ir/op_def.h"
#include "rhea/ops/optimizer/kernels.h"

namespace rhea::ops {

struct AdamAttrs {
  double beta1, beta2, eps, weight_decay;
  bool decoupled;
};
AdamAttrs adam_attrs(const ir::Attrs& attrs);
std::vector<ir::AttrSpec> adam_attr_specs();
// Operands p, g, m, v, clip, lr, step; throws Error on a wrong one.
void check_adam_operands(std::span<const ir::Type> in, const ir::Attrs& attrs);
// The factors of this step, from operands 4 to 6. Computed in f64.
AdamScalars adam_scalars(const AdamAttrs& attrs, const ir::KernelArgs& args);
// Results 0 to 2 in f64.
void adam_reference(const ir::ReferenceArgs& args);
ir::Cost adam_cost(const ir::OpInstance& node);
std::string adam_shard(const ir::OpInstance& node);
ir::Sample adam_sample(ir::Shape shape, DType p, DType g, DType m);

}  // namespace rhea::ops
