// T tokens, D model dim, F hidden dim
#include "rhea/nn/feed_forward.h"

#include <cmath>

#include "rhea/nn/activation.h"
#include "rhea/ops/ops.h"

namespace rhea::nn {
namespace {

void activation_field(Visitor& v, std::string& activation) {
  v("activation", activation, "function between the projections");
}

}  // namespace

Value gated(std::string_view activation, Value gate, Value up) {
  return activation == "silu" ? ops::swiglu(gate, up) : activate(activation, gate) * up;
}

Value FeedForward::Config::forward(Trace& trace, Value x_TD) const {
  const Value gate_TF = call(trace, names->w1, *w1, x_TD);
  const Value up_TF = call(trace, names->w3, *w3, x_TD);
  return call(trace, names->w2, *w2, gated(activation, gate_TF, up_TF));
}

void FeedForward::Config::fields(Visitor& v) {
  v.names(names);
  activation_field(v, activation);
  v(names->w1, w1, "gate projection");
  v(names->w2, w2, "output projection");
  v(names->w3, w3, "up projection");
}

Value JoinedFeedForward::Config::forward(Trace& trace, Value x_TD) const {
  const Value both = call(trace, names->w13, *w13, x_TD);
  const int64_t f = w2->in_features;
  const Value hidden_TF =
      gated(activation, ops::slice_dim(both, 1, 0, f), ops::slice_dim(both, 1, f, 2 * f));
  return call(trace, names->w2, *w2, hidden_TF);
}

void JoinedFeedForward::Config::fields(Visitor& v) {
  v.names(names);
  activation_field(v, activation);
  v(names->w13, w13, "gate and up projections");
  v(names->w2, w2, "output projection");
}

Value PlainFeedForward::Config::forward(Trace& trace, Value x_TD) const {
  const Value hidden_TF = activated(trace, call(trace, names->w1, *w1, x_TD));
  return call(trace, names->w2, *w2, hidden_TF);
}

Value PlainFeedForward::Config::activated(Trace&, Value x_TF) const {
  return activate(activation, x_TF);
}

void PlainFeedForward::Config::fields(Visitor& v) {
  v.names(names);
  activation_field(v, activation);
  v(names->w1, w1, "input projection");
  v(names->w2, w2, "output projection");
}

Value XieluFeedForward::Config::activated(Trace& trace, Value x_TF) const {
  constexpr double kBeta = 0.5, kEps = -1e-6;
  const ir::Scope scope(trace.graph(), "act_fn");
  const Value x = ops::convert(x_TF, DType::f32);
  const auto everywhere = [&](Value scalar) {
    return ops::broadcast_in_dim(ops::reshape(scalar, {1, 1}), x.shape(), {0, 1});
  };
  // softplus of a parameter that starts so that it gives `start`.
  const auto softplus = [&](std::string_view name, double start) {
    const Value alpha = ops::convert(
        trace.parameter(name, {1}, Init::constant(std::log(std::expm1(start)))), DType::f32);
    return ops::log(ops::add(ops::exponential(alpha), 1.0));
  };
  const auto constant = [&](std::string_view name, double value) {
    return ops::reshape(trace.constant(name, {}, Init::constant(value)), {1});
  };
  const Value beta = constant("beta", kBeta), eps = constant("eps", kEps);
  const Value p = everywhere(softplus("alpha_p", 0.8));
  const Value n = everywhere(softplus("alpha_n", 0.8 - kBeta) + beta);
  const Value above = p * x * x;
  // Bounded, so that what is not chosen is finite.
  const Value below = n * (ops::add(ops::exponential(ops::minimum(x, everywhere(eps))), -1.0) - x);
  const Value zero = trace.graph().constant(0, x.type());
  const Value chosen = ops::select(ops::compare(x, zero, "GT"), above, below);
  return ops::convert(chosen + everywhere(beta) * x, x_TF.dtype());
}

}  // namespace rhea::nn
