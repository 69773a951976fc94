// The model: a decoder whose tokens meet by a shift and a gate instead of attention.
//
// T tokens, D model dim
#pragma once
#include "rhea/nn/decoder.h"
#include "rhea/ops/ops.h"

namespace token_shift {

using rhea::ir::Value;
using rhea::nn::Trace;

struct ShiftMixer {
  // z = keep * x + (1 - keep) * (x of the token before, 0 where a document begins), with a learned
  // share of each dim; y = wo(silu(wg z) * wv z)
  struct Config : rhea::nn::Branch::Config {
    rhea::Slot<rhea::nn::Linear::Config> wg, wv, wo;

    Value forward(Trace& trace, Value x_TD) const override {
      namespace ops = rhea::ops;
      const int64_t num_tokens = x_TD.shape()[0], dim = x_TD.shape()[1];
      const Value share_D = trace.parameter("share", {dim}, rhea::nn::Init::zeros());
      const Value keep_TD = ops::broadcast_in_dim(ops::logistic(share_D), {num_tokens, dim}, {1});
      const Value before_TD = ops::pad(ops::slice_dim(x_TD, 0, 0, num_tokens - 1), {1, 0}, {0, 0});
      // Positions restart at 0 where a document or a row begins.
      const Value position_T = ops::convert(trace.positions(), rhea::DType::f32);
      const Value inside_T = ops::minimum(position_T, trace.graph().constant(1, position_T.type()));
      const Value inside_TD =
          ops::broadcast_in_dim(ops::convert(inside_T, x_TD.dtype()), {num_tokens, dim}, {0});
      const Value z_TD = before_TD * inside_TD + keep_TD * (x_TD - before_TD * inside_TD);
      const Value gate_TD = rhea::nn::call(trace, "wg", *wg, z_TD);
      const Value value_TD = rhea::nn::call(trace, "wv", *wv, z_TD);
      return rhea::nn::call(trace, "wo", *wo, ops::swiglu(gate_TD, value_TD));
    }

    void fields(rhea::Visitor& v) override {
      v("wg", wg, "to the gate");
      v("wv", wv, "to the values");
      v("wo", wo, "back to the residual stream");
    }
  };
};

}  // namespace token_shift
