#include "rhea/nn/transposed_linear.h"

#include "rhea/ops/ops.h"

namespace rhea::nn {

Value TransposedLinear::Config::forward(Trace& trace, Value x) const {
  const Value w_KN = trace.parameter("weight", {in_features, out_features}, init.init());
  const Value y = ops::dot_general(x, w_KN, 1, 0, x.dtype());
  if (!bias) return y;
  const Value b = trace.parameter("bias", {out_features}, Init::zeros());
  return y + ops::broadcast_in_dim(b, y.shape(), {y.type().rank() - 1});
}

}  // namespace rhea::nn
