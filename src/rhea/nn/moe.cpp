// T tokens, D model dim, E experts, R = T k rows in the order of experts, F hidden dim of an expert
#include "rhea/nn/moe.h"

#include "rhea/base/error.h"
#include "rhea/ops/grouped/grouped.h"

namespace rhea::nn {

const MoeNames kHuggingFaceMoeNames{};
const MoeNames kNativeMoeNames{.gate = "router.gate",
                               .correction_bias = "expert_bias_E",
                               .experts = "routed_experts.inner_experts",
                               .w1 = "w1_EFD",
                               .w2 = "w2_EDF",
                               .w3 = "w3_EFD",
                               .stacked = true};

void Experts::Config::fields(Visitor& v) {
  v.names(names);
  v("num_experts", num_experts, "experts of the layer", at_least(1));
  v("dim", dim, "model dim", at_least(1));
  v("hidden_dim", hidden_dim, "hidden dim of an expert", at_least(1));
}

Value SplitExperts::Config::weight(Trace& trace, std::string_view name, int64_t rows,
                                   int64_t columns, const InitConfig& init) const {
  std::vector<Trace::PartSpec> parts;
  if (names->stacked) {
    const std::string whole = fmt::format("{}.{}", names->experts, name);
    parts.push_back({.name = whole, .rows = num_experts, .init = init.init(), .shape = {}});
    return trace.parameter(whole, {num_experts, rows, columns}, parts, {top_k, num_experts});
  }
  for (int64_t e = 0; e < num_experts; ++e)
    parts.push_back({.name = fmt::format("{}.{}.{}.weight", names->experts, e, name),
                     .rows = 1,
                     .init = init.init(),
                     .shape = {rows, columns}});
  return trace.parameter(fmt::format("{}.{}.weight", names->experts, name),
                         {num_experts, rows, columns}, parts, {top_k, num_experts});
}

SplitExperts::Config::Weights SplitExperts::Config::weights(Trace& trace) const {
  Weights made;
  made.w1_EFD = weight(trace, names->w1, hidden_dim, dim, w1_init);
  made.w3_EFD = weight(trace, names->w3, hidden_dim, dim, w3_init);
  made.w2_EDF = weight(trace, names->w2, dim, hidden_dim, w2_init);
  return made;
}

Value SplitExperts::Config::forward(Trace& trace, Value x_RD, const ops::ExpertOrder& order) const {
  const Weights w = weights(trace);
  const Value gate_RF = ops::grouped_product(x_RD, w.w1_EFD, order.counts_E, 1);
  const Value up_RF = ops::grouped_product(x_RD, w.w3_EFD, order.counts_E, 1);
  return ops::grouped_product(gated(activation, gate_RF, up_RF), w.w2_EDF, order.counts_E, 1);
}

void SplitExperts::Config::fields(Visitor& v) {
  Experts::Config::fields(v);
  v("activation", activation, "of the gate");
  v("w1_init", w1_init, "how the gate projections start");
  v("w2_init", w2_init, "how the output projections start");
  v("w3_init", w3_init, "how the up projections start");
}

// x w[e] (+ b[e]), `width` wide.
Value JoinedExperts::Config::product(Trace& trace, std::string_view name, Value x, int64_t width,
                                     const InitConfig& init, const ops::ExpertOrder& order) const {
  const int64_t in = x.dim(1);
  const Shape shape = transposed ? Shape{num_experts, in, width} : Shape{num_experts, width, in};
  const std::vector<Trace::PartSpec> whole = {
      {.name = std::string(name), .rows = num_experts, .init = init.init(), .shape = {}}};
  const Value w = trace.parameter(name, shape, whole, {top_k, num_experts});
  const Value y = ops::grouped_product(x, w, order.counts_E, transposed ? 0 : 1);
  if (!bias) return y;
  const std::string bias_name = fmt::format("{}_bias", name);
  const std::vector<Trace::PartSpec> whole_bias = {
      {.name = bias_name, .rows = num_experts, .init = Init::zeros(), .shape = {}}};
  const Value b =
      trace.parameter(bias_name, {num_experts, width}, whole_bias, {top_k, num_experts});
  return y + ops::embedding(b, order.experts_R);
}

Value JoinedExperts::Config::hidden(Value y) const {
  const int64_t rows = y.dim(0);
  const auto half = [&](int64_t i) {
    if (!transposed) return ops::slice_dim(y, 1, i * hidden_dim, (i + 1) * hidden_dim);
    const Value pairs = ops::reshape(y, {rows, hidden_dim, 2});
    return ops::reshape(ops::slice_dim(pairs, 2, i, i + 1), {rows, hidden_dim});
  };
  const Value gate = half(0), up = half(1);
  if (activation != "clamped_swiglu") return gated(activation, gate, up);
  const auto bound = [&](double value) { return y.graph->constant(value, gate.type()); };
  const Value low = ops::minimum(gate, bound(limit));
  const Value both = ops::maximum(ops::minimum(up, bound(limit)), bound(-limit));
  return low * ops::logistic(ops::multiply(low, alpha)) * ops::add(both, 1);
}

Value JoinedExperts::Config::forward(Trace& trace, Value x_RD,
                                     const ops::ExpertOrder& order) const {
  const Value y = product(trace, names->w13, x_RD, 2 * hidden_dim, w13_init, order);
  return product(trace, names->w2_joined, hidden(y), dim, w2_init, order);
}

void JoinedExperts::Config::fields(Visitor& v) {
  Experts::Config::fields(v);
  v("activation", activation, "of the gate; clamped_swiglu: that of gpt-oss");
  v("transposed", transposed, "input dim first, gate and up in turn");
  v("bias", bias, "adds biases");
  v("alpha", alpha, "clamped_swiglu: slope of the sigmoid");
  v("limit", limit, "clamped_swiglu: bound of gate and up");
  v("w13_init", w13_init, "how the gate and up projections start");
  v("w2_init", w2_init, "how the output projections start");
}

Value Dispatcher::Config::forward(Trace&, Value x_TD, const ops::ExpertOrder& order) const {
  return ops::dispatch(x_TD, order);
}

Value Dispatcher::Config::combine(Trace&, Value y_RD, const ops::ExpertOrder& order,
                                  Value weights_Tk) const {
  return ops::combine(y_RD, order, weights_Tk);
}

void Dispatcher::Config::fields(Visitor&) {}

Value RoutedExperts::Config::forward(Trace& trace, Value x_TD,
                                     const Router::Config::Result& routed) const {
  const auto order = ops::expert_order(routed.experts_Tk, inner_experts->num_experts);
  const Value x_RD = call(trace, "", *token_dispatcher, x_TD, order);
  const Value y_RD = call(trace, "", *inner_experts, x_RD, order);
  return token_dispatcher->combine(trace, y_RD, order, routed.weights_Tk);
}

void RoutedExperts::Config::fields(Visitor& v) {
  v("token_dispatcher", token_dispatcher, "carries tokens to the experts and back");
  v("inner_experts", inner_experts, "the experts", required);
}

Value MoE::Config::forward(Trace& trace, Value x_TD) const {
  const MoeNames& names = *routed_experts->inner_experts->names;
  const auto routed = call(trace, "", *router, x_TD);
  if (load_balance_coeff) {
    if (!router->correction_bias)
      throw Error(
          "load_balance_coeff is {}, but the router has no bias that could move; set "
          "router.correction_bias, or leave the coefficient out",
          *load_balance_coeff);
    trace.balance(names.correction_bias, *load_balance_coeff, routed.experts_Tk);
  }
  const Value y_TD = call(trace, "", *routed_experts, x_TD, routed);
  if (!shared_experts) return y_TD;
  Value shared_TD = call(trace, names.shared, *shared_experts, x_TD);
  if (gates_shared) {
    const Value open_T = ops::reshape(
        ops::logistic(call(trace, names.shared_gate, *shared_gate, x_TD)), {x_TD.dim(0)});
    shared_TD = shared_TD * ops::broadcast_in_dim(open_T, shared_TD.shape(), {0});
  }
  return y_TD + shared_TD;
}

void MoE::Config::fields(Visitor& v) {
  v("router", router, "sends tokens to experts");
  v("routed_experts", routed_experts, "the experts that tokens are sent to");
  if (shared_experts) v("shared_experts", shared_experts, "a feed-forward that all tokens take");
  v("gates_shared", gates_shared, "each token weighs its shared feed-forward");
  if (gates_shared) v("shared_gate", shared_gate, "weight of the shared feed-forward");
  v("load_balance_coeff", load_balance_coeff,
    "how much the router's correction bias moves per step towards equal load, absent = not");
}

}  // namespace rhea::nn
