// T tokens, D model dim, E experts, G groups, k experts of a token
#include <limits>

#include "rhea/base/error.h"
#include "rhea/nn/moe.h"

namespace rhea::nn {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// x [.., 1] or [..] over the last dim of `like`.
Value spread(Value x, Value like) {
  if (x.type().rank() == like.type().rank()) x = ops::reshape(x, {x.dim(0)});
  return ops::broadcast_in_dim(x, like.shape(), {0});
}

Value splat(double value, Value like) { return like.graph->constant(value, like.type()); }

}  // namespace

// [T,E] flags of the experts whose group is among the best.
Value Router::Config::allowed_experts(Value choice_TE) const {
  const int64_t tokens = choice_TE.dim(0), size = div_exact(num_experts, num_groups);
  const Value by_group = ops::reshape(choice_TE, {tokens, num_groups, size});
  const Value best_TG =
      group_score == "max"
          ? ops::reduce_max(by_group, {2})
          : ops::reduce_sum(ops::top_k(by_group, std::min<int64_t>(2, size))[0], {2});
  const auto top = ops::top_k(best_TG, top_groups);
  const Value kept_TG = ops::put_last(splat(1, top[0]), top[1], num_groups);
  const Value kept_TE = ops::reshape(
      ops::broadcast_in_dim(kept_TG, {tokens, num_groups, size}, {0, 1}), {tokens, num_experts});
  return ops::compare(kept_TE, splat(0.5, kept_TE), "GT");
}

std::vector<Value> Router::Config::best(Trace& trace, Value choice_TE) const {
  if (!trace.options().force_load_balance) return ops::top_k(choice_TE, top_k);
  // All experts in turn, often enough for all slots.
  const int64_t tokens = choice_TE.dim(0), slots = tokens * top_k;
  const int64_t turns = div_up(slots, num_experts);
  const Value turn_RE = ops::iota(trace.graph(), {turns, num_experts}, DType::i32, 1);
  const Value experts_Tk = ops::reshape(
      ops::slice_dim(ops::reshape(turn_RE, {turns * num_experts}), 0, 0, slots), {tokens, top_k});
  return {ops::take_last(choice_TE, experts_Tk), experts_Tk};
}

Router::Config::Result Router::Config::chosen_by_score(Trace& trace, Value z_TE) const {
  if (score == "softmax_of_chosen") {
    const auto top = best(trace, z_TE);
    return {ops::softmax(top[0]), top[1]};
  }
  Value s_TE = score == "sigmoid" ? ops::logistic(z_TE) : ops::softmax(z_TE);
  Value choice_TE = ops::stop_gradient(s_TE);
  if (correction_bias) {
    const Shape shape = correction_bias_is_row ? Shape{1, num_experts} : Shape{num_experts};
    const Value b = trace.constant(names->correction_bias, shape, Init::zeros());
    choice_TE =
        choice_TE + ops::broadcast_in_dim(ops::reshape(b, {num_experts}), choice_TE.shape(), {1});
  }
  if (num_groups > 1 && top_groups < num_groups) {
    const Value allowed_TE = allowed_experts(choice_TE);
    const bool zeroed = group_score == "max";
    choice_TE = ops::select(allowed_TE, choice_TE, splat(zeroed ? 0 : kMinusInfinity, choice_TE));
    // A token with fewer candidates than k then takes others with weight 0.
    if (zeroed) s_TE = ops::select(allowed_TE, s_TE, splat(0, s_TE));
  }
  const Value experts_Tk = best(trace, choice_TE)[1];
  return {ops::take_last(s_TE, experts_Tk), experts_Tk};
}

// The best expert's weight is its softmax among those that are not far below it; the second one's
// the same after the first is left out. What is far: more than 2 * jitter of the larger of |z| and
// the best z.
Router::Config::Result Router::Config::sparsemixer(Value z_TE) const {
  std::vector<Value> weights, experts;
  Value left_TE = z_TE;
  for (int64_t i = 0; i < top_k; ++i) {
    const Value fixed_TE = ops::stop_gradient(left_TE);
    const auto top = ops::top_k(fixed_TE, 1);
    const Value best_TE = spread(top[0], z_TE), z_fixed = ops::stop_gradient(z_TE);
    const Value far_TE = ops::divide(best_TE - z_fixed, ops::maximum(ops::abs(z_fixed), best_TE));
    const Value dropped_TE = ops::compare(far_TE, splat(2 * jitter, far_TE), "GT");
    const Value near_TE = ops::select(dropped_TE, splat(kMinusInfinity, z_TE), left_TE);
    weights.push_back(ops::take_last(ops::softmax(near_TE), top[1]));
    experts.push_back(top[1]);
    const Value taken_TE = ops::put_last(splat(1, top[0]), top[1], num_experts);
    left_TE = ops::select(ops::compare(taken_TE, splat(0.5, taken_TE), "GT"),
                          splat(kMinusInfinity, z_TE), left_TE);
  }
  return {ops::concatenate(weights, 1), ops::concatenate(experts, 1)};
}

Router::Config::Result Router::Config::forward(Trace& trace, Value x_TD) const {
  const Value z_TE = call(trace, names->gate, *gate, ops::convert(x_TD, DType::f32));
  Result result = score == "sparsemixer" ? sparsemixer(z_TE) : chosen_by_score(trace, z_TE);
  Value& w_Tk = result.weights_Tk;
  if (normalize) {
    Value sum_T = ops::reduce_sum(w_Tk, {1});
    sum_T = normalize_min > 0 ? ops::maximum(sum_T, splat(normalize_min, sum_T))
                              : ops::add(sum_T, 1e-20);
    w_Tk = ops::divide(w_Tk, spread(sum_T, w_Tk));
  }
  if (scale != 1) w_Tk = ops::multiply(w_Tk, scale);
  trace.observe("router_logits", z_TE);
  trace.observe("router_experts", result.experts_Tk);
  return result;
}

void Router::Config::fields(Visitor& v) {
  v.names(names);
  v("num_experts", num_experts, "experts to choose from", at_least(1));
  v("top_k", top_k, "experts of a token", at_least(1));
  v("gate", gate, "gives the logits");
  v("score", score, "what a token is worth to an expert",
    one_of{"softmax", "sigmoid", "softmax_of_chosen", "sparsemixer"});
  v("correction_bias", correction_bias, "a constant per expert takes part in the choice");
  v("num_groups", num_groups, "groups of neighbouring experts", at_least(1));
  v("top_groups", top_groups, "groups from which experts are chosen", at_least(1));
  v("group_score", group_score, "a group is as good as its best expert or its best two",
    one_of{"max", "top2"});
  v("normalize", normalize, "the weights of a token sum to 1 before the scale");
  v("normalize_min", normalize_min, "least sum that weights are divided by, 0 = 1e-20 is added");
  v("scale", scale, "of the weights");
  v("jitter", jitter, "sparsemixer: share of the best logit below which experts drop out");
}

}  // namespace rhea::nn
