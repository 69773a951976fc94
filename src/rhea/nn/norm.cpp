// T tokens, N heads, H head dim
#include "rhea/nn/norm.h"

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"

namespace rhea::nn {
namespace {

// 1 less what the formula adds.
Init weight_init(double offset) { return offset == 0 ? Init::ones() : Init::zeros(); }

}  // namespace

void Norm::Config::fields(Visitor& v) {
  v("dim", dim, "elements of a row", at_least(1));
  v("eps", eps, "added to the mean square");
}

Value RMSNorm::Config::forward(Trace& trace, Value x) const {
  return ops::rms_norm(x, trace.parameter("weight", {dim}, weight_init(offset)), eps, offset);
}

void RMSNorm::Config::fields(Visitor& v) {
  Norm::Config::fields(v);
  v("offset", offset, "added to the weight");
}

Value LayerNorm::Config::forward(Trace& trace, Value x) const {
  std::optional<Value> w_D, b_D;
  if (weight) {
    w_D = trace.parameter("weight", {dim}, weight_init(offset));
    if (offset != 0) w_D = ops::add(*w_D, offset);
  }
  if (bias) b_D = trace.parameter("bias", {dim}, Init::zeros());
  return ops::layer_norm(x, w_D, b_D, eps);
}

void LayerNorm::Config::fields(Visitor& v) {
  Norm::Config::fields(v);
  v("offset", offset, "added to the weight");
  v("weight", weight, "multiplies by a weight");
  v("bias", bias, "adds a bias");
}

Value HeadLayerNorm::Config::forward(Trace& trace, Value x_TNH) const {
  if (x_TNH.type().rank() != 3 || x_TNH.dim(2) != dim)
    throw Error("HeadLayerNorm: expected heads of {} elements, [T, N, {}], got {}", dim, dim,
                ir::to_string(x_TNH.shape()));
  const Value w_NH = trace.parameter("weight", {x_TNH.dim(1), dim}, Init::ones());
  const Value normed_TNH = ops::layer_norm(x_TNH, std::nullopt, std::nullopt, eps);
  return normed_TNH * ops::broadcast_in_dim(w_NH, x_TNH.shape(), {1, 2});
}

}  // namespace rhea::nn
