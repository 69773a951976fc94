// T tokens, D model dim, F hidden dim
#include "rhea/nn/feed_forward.h"

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
  activation_field(v, activation);
  v(names->w13, w13, "gate and up projections");
  v(names->w2, w2, "output projection");
}

Value PlainFeedForward::Config::forward(Trace& trace, Value x_TD) const {
  const Value hidden_TF = activate(activation, call(trace, names->w1, *w1, x_TD));
  return call(trace, names->w2, *w2, hidden_TF);
}

void PlainFeedForward::Config::fields(Visitor& v) {
  activation_field(v, activation);
  v(names->w1, w1, "input projection");
  v(names->w2, w2, "output projection");
}

}  // namespace rhea::nn
