// T tokens, D model dim, K key heads, N value heads, H elements of a key, V of a value
#include "rhea/nn/gated_delta_net.h"

#include <array>
#include <cmath>

#include "rhea/base/error.h"
#include "rhea/ops/delta/delta.h"
#include "rhea/ops/ops.h"

namespace rhea::nn {
namespace {

Value widened(Value x) { return ops::convert(x, DType::f32); }

// log(1 + e^x) without overflow
Value softplus(Value x) {
  const Value zero = x.graph->constant(0, x.type());
  return ops::maximum(x, zero) + ops::log(ops::add(ops::exponential(ops::negate(ops::abs(x))), 1));
}

// x / sqrt(sum of squares of each head + eps)
Value unit_heads(Value x_TKH) {
  const Value squares = ops::reduce_sum(x_TKH * x_TKH, {2});
  return x_TKH * ops::broadcast_in_dim(ops::rsqrt(ops::add(squares, 1e-6)), x_TKH.shape(), {0, 1});
}

}  // namespace

// silu(convolution of the columns of qkv), f32.
Value GatedDeltaNet::Config::convolved(Trace& trace, Value qkv) const {
  const int64_t channels = qkv.dim(1);
  const ir::Scope scope(trace.graph(), "conv1d");
  const Value w = trace.parameter("weight", {channels, 1, conv_taps}, init.init());
  const Value taps = ops::reshape(widened(w), {channels, conv_taps});
  const Value y = trace.options().cached ? one_convolved(trace, widened(qkv), taps)
                                         : ops::causal_conv(widened(qkv), taps, trace.positions(),
                                                            trace.options().seq_len);
  return ops::silu(ops::convert(y, qkv.dtype()));
}

// Of one token, over the ones before it that the state holds.
Value GatedDeltaNet::Config::one_convolved(Trace& trace, Value qkv, Value taps_CW) const {
  const int64_t channels = qkv.dim(1);
  if (conv_taps == 1) return qkv * ops::reshape(taps_CW, {1, channels});
  const std::array rows = {trace.state("taps", {DType::f32, {conv_taps - 1, channels}}), qkv};
  const Value window_WC = ops::concatenate(rows, 0);
  trace.update_state("taps", ops::slice_dim(window_WC, 0, 1, conv_taps));
  return ops::reshape(ops::reduce_sum(window_WC * ops::transpose(taps_CW, {1, 0}), {0}),
                      {1, channels});
}

// ops::gated_delta_rule for one token, the state of the ones before it in a cache.
Value GatedDeltaNet::Config::one_token(Trace& trace, const Step& step) const {
  const int64_t n = num_value_heads, h = key_head_dim, v = value_head_dim;
  const Shape shape = {n, h, v};
  const auto per_value_head = [&](Value x_TKH) {  // over the state
    const Value x_KGH = ops::broadcast_in_dim(ops::reshape(x_TKH, {num_key_heads, h}),
                                              {num_key_heads, n / num_key_heads, h}, {0, 2});
    return ops::broadcast_in_dim(ops::reshape(x_KGH, {n, h}), shape, {0, 1});
  };
  const auto per_head = [&](Value x_TN) {
    return ops::broadcast_in_dim(ops::reshape(x_TN, {n}), shape, {0});
  };
  const Value k = per_value_head(step.k_TKH);
  const Value decayed =
      trace.state("state", {DType::f32, shape}) * per_head(ops::exponential(step.g_TN));
  const Value beta_NV = ops::broadcast_in_dim(ops::reshape(step.beta_TN, {n}), {n, v}, {0});
  const Value delta_NV =
      beta_NV * (ops::reshape(step.v_TNV, {n, v}) - ops::reduce_sum(decayed * k, {1}));
  const Value state = decayed + k * ops::broadcast_in_dim(delta_NV, shape, {0, 2});
  trace.update_state("state", state);
  return ops::reshape(ops::reduce_sum(state * per_value_head(step.q_TKH), {1}), {1, n, v});
}

// g = -exp(A_log) softplus(a + dt_bias)
Value GatedDeltaNet::Config::decay(Trace& trace, Value a_TN) const {
  const Value a_log = widened(trace.parameter("A_log", {num_value_heads}, Init::zeros()));
  const Value dt_bias = widened(trace.parameter("dt_bias", {num_value_heads}, Init::ones()));
  const auto spread = [&](Value x_N) { return ops::broadcast_in_dim(x_N, a_TN.shape(), {1}); };
  return ops::negate(spread(ops::exponential(a_log)) * softplus(widened(a_TN) + spread(dt_bias)));
}

// norm(o) * silu(z), the gate in f32.
Value GatedDeltaNet::Config::gated_norm(Trace& trace, Value o_TNV, Value z_TNV) const {
  const ir::Scope scope(trace.graph(), "norm");
  const Value w_V = trace.parameter("weight", {value_head_dim}, Init::ones());
  const Value y_TNV = ops::rms_norm(o_TNV, w_V, eps);
  return ops::convert(widened(y_TNV) * ops::silu(widened(z_TNV)), o_TNV.dtype());
}

Value GatedDeltaNet::Config::forward(Trace& trace, Value x_TD) const {
  RHEA_CHECK(!trace.options().cached || x_TD.dim(0) == 1, "{} tokens at a time", x_TD.dim(0));
  const int64_t t = x_TD.dim(0), group = div_exact(num_value_heads, num_key_heads);
  const int64_t key = key_head_dim, value = group * value_head_dim;
  const auto project = [&](std::string_view name, int64_t rows) {
    const ir::Scope scope(trace.graph(), name);
    return ops::linear(x_TD, trace.parameter("weight", {rows, dim}, init.init()));
  };
  // Per key head: q, k, then v and z of its value heads.
  const int64_t width = 2 * key + 2 * value;
  const Value by_head =
      ops::reshape(project("in_proj_qkvz", num_key_heads * width), {t, num_key_heads, width});
  const auto part = [&](int64_t begin, int64_t count) {
    return ops::reshape(ops::slice_dim(by_head, 2, begin, begin + count),
                        {t, num_key_heads * count});
  };
  const std::array parts = {part(0, key), part(key, key), part(2 * key, value)};
  const Value qkv = convolved(trace, ops::concatenate(parts, 1));
  const Value ba =
      ops::reshape(project("in_proj_ba", 2 * num_value_heads), {t, num_key_heads, 2 * group});
  const auto per_value_head = [&](int64_t begin) {
    return ops::reshape(ops::slice_dim(ba, 2, begin, begin + group), {t, num_value_heads});
  };
  const auto heads = [&](int64_t begin, int64_t count, int64_t size) {
    return widened(
        ops::reshape(ops::slice_dim(qkv, 1, begin, begin + count * size), {t, count, size}));
  };
  const int64_t keys = num_key_heads * key;
  const Step step{.q_TKH = ops::multiply(unit_heads(heads(0, num_key_heads, key)),
                                         1 / std::sqrt(static_cast<double>(key))),
                  .k_TKH = unit_heads(heads(keys, num_key_heads, key)),
                  .v_TNV = heads(2 * keys, num_value_heads, value_head_dim),
                  .g_TN = decay(trace, per_value_head(group)),
                  .beta_TN = ops::logistic(widened(per_value_head(0)))};
  const Value o =
      trace.options().cached
          ? one_token(trace, step)
          : ops::gated_delta_rule(step.q_TKH, step.k_TKH, step.v_TNV, step.g_TN, step.beta_TN,
                                  trace.positions(), trace.options().seq_len);
  const Value o_TNV = ops::convert(o, x_TD.dtype());
  const Value z_TNV =
      ops::reshape(part(2 * key + value, value), {t, num_value_heads, value_head_dim});
  const Value y_TNV = gated_norm(trace, o_TNV, z_TNV);
  return call(trace, "out_proj", *out_proj,
              ops::reshape(y_TNV, {t, num_value_heads * value_head_dim}));
}

void GatedDeltaNet::Config::fields(Visitor& v) {
  v("dim", dim, "model dim", at_least(1));
  v("num_key_heads", num_key_heads, "heads of queries and keys", at_least(1));
  v("num_value_heads", num_value_heads, "heads of values, as many for each key head", at_least(1));
  v("key_head_dim", key_head_dim, "elements of a key", at_least(1));
  v("value_head_dim", value_head_dim, "elements of a value", at_least(1));
  v("conv_taps", conv_taps, "tokens that the convolution sees, the own one included", at_least(1));
  v("init", init, "how the input projections and the convolution start");
  v("out_proj", out_proj, "output projection");
  v("eps", eps, "of the gated norm");
}

QKV::Config::Result GatedQKV::Config::forward(Trace& trace, Value x_TD) const {
  const int64_t t = x_TD.dim(0);
  const Value both = ops::reshape(call(trace, names->wq, *wq, x_TD), {t, n_heads, 2 * head_dim});
  return {.q_TNH = ops::slice_dim(both, 2, 0, head_dim),
          .k_TKH = heads(call(trace, names->wk, *wk, x_TD), 0, n_kv_heads),
          .v_TKH = heads(call(trace, names->wv, *wv, x_TD), 0, n_kv_heads),
          .gate_TNH = ops::slice_dim(both, 2, head_dim, 2 * head_dim)};
}

void GatedQKV::Config::fields(Visitor& v) {
  QKV::Config::fields(v);
  v(names->wq, wq, "query and gate projection");
  v(names->wk, wk, "key projection");
  v(names->wv, wv, "value projection");
}

}  // namespace rhea::nn
