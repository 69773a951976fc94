// T tokens, D model dim, N query heads, K kv heads, H head dim
#include "rhea/nn/attention.h"

#include <cmath>

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"

namespace rhea::nn {
namespace {

Value clip(Value x, double bound) {
  const auto limit = [&](double number) { return x.graph->constant(number, x.type()); };
  return ops::minimum(ops::maximum(x, limit(-bound)), limit(bound));
}

}  // namespace

Value Attention::Config::normed(Trace& trace, std::string_view name, const Slot<Norm::Config>& norm,
                                Value heads) const {
  if (!norm) return heads;
  if (!norm_full_width) return call(trace, name, *norm, heads);
  const Value wide = ops::reshape(heads, {heads.dim(0), heads.dim(1) * heads.dim(2)});
  return ops::reshape(call(trace, name, *norm, wide), heads.shape());
}

// From the projections to what attention takes.
void Attention::Config::prepare(Trace& trace, QKV::Config::Result& qkv) const {
  const auto norms = [&] {
    qkv.q_TNH = normed(trace, names->q_norm, q_norm, qkv.q_TNH);
    qkv.k_TKH = normed(trace, names->k_norm, k_norm, qkv.k_TKH);
  };
  if (!norm_after_rope) norms();
  if (clip_qkv > 0) {
    for (Value* heads : {&qkv.q_TNH, &qkv.k_TKH, &qkv.v_TKH}) *heads = clip(*heads, clip_qkv);
  }
  if (rope) {
    qkv.q_TNH = call(trace, "rope", *rope, qkv.q_TNH);
    qkv.k_TKH = call(trace, "rope", *rope, qkv.k_TKH);
  }
  if (norm_after_rope) norms();
}

Value Attention::Config::attend(Trace& trace, const QKV::Config::Result& qkv) const {
  const double score_scale =
      scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(qkv_linear->head_dim));
  std::optional<Value> sink_N;
  if (sinks) sink_N = trace.parameter("sinks", {qkv_linear->n_heads}, sinks_init.init());
  std::optional<Value> bias_NP;
  if (position_bias) bias_NP = call(trace, "position_bias", *position_bias);
  const ops::AttentionOptions options{.scale = score_scale,
                                      .seq_len = trace.options().seq_len,
                                      .window = sliding_window,
                                      .softcap = softcap,
                                      .documents = document_mask};
  if (trace.options().cached)
    return ops::attention_cached(qkv.q_TNH, trace.cached("k", qkv.k_TKH),
                                 trace.cached("v", qkv.v_TKH), trace.cache_start(), options, sink_N,
                                 bias_NP);
  return ops::attention(qkv.q_TNH, qkv.k_TKH, qkv.v_TKH, trace.positions(), options, sink_N,
                        bias_NP);
}

Value Attention::Config::forward(Trace& trace, Value x_TD) const {
  QKV::Config::Result qkv = call(trace, names->qkv, *qkv_linear, x_TD);
  prepare(trace, qkv);
  Value o_TNH = attend(trace, qkv);
  if (qkv.gate_TNH.valid()) o_TNH = o_TNH * ops::logistic(qkv.gate_TNH);
  const Value joined = ops::reshape(o_TNH, {o_TNH.dim(0), o_TNH.dim(1) * o_TNH.dim(2)});
  return call(trace, names->wo, *wo, joined);
}

void Attention::Config::fields(Visitor& v) {
  v.names(names);
  // Without a scope of their own the projections are children of the attention.
  if (!names->qkv.empty())
    v(names->qkv, qkv_linear, "query, key and value projections", required);
  else
    v.inlined(kNativeNames.qkv, qkv_linear);
  v(names->wo, wo, "output projection");
  v(names->q_norm, q_norm, "norm of the query heads");
  v(names->k_norm, k_norm, "norm of the key heads");
  v("norm_full_width", norm_full_width, "these norms are over all heads together");
  v("norm_after_rope", norm_after_rope, "these norms come after the rotary embedding");
  v("clip_qkv", clip_qkv, "bound of the elements of q, k and v, 0 = none");
  v("rope", rope, "rotary embedding");
  if (position_bias) v("position_bias", position_bias, "what distance takes from the scores");
  v("scale", scale, "of the scores; 0 = head_dim^-0.5");
  v("sliding_window", sliding_window, "tokens a query sees, itself included; 0 = all before it");
  v("document_mask", document_mask, "tokens see their own document only");
  v("softcap", softcap, "bound of the scores, 0 = none");
  v("sinks", sinks, "a learned logit per head in the denominator");
  v("sinks_init", sinks_init, "how the sinks start");
}

}  // namespace rhea::nn
