// T tokens, D model dim, N heads, C width of the latent, H = nope + rope, V head dim of values
#include "rhea/nn/mla.h"

#include <array>
#include <cmath>

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"

namespace rhea::nn {

const LatentNames kHuggingFaceLatentNames{};

LatentAttention::Config::Projected LatentAttention::Config::project(Trace& trace,
                                                                    Value x_TD) const {
  const Value q =
      q_lora_rank == 0 ? call(trace, names->wq, *wq, x_TD) : call(trace, names->wq_a, *wq_a, x_TD);
  return {q, call(trace, names->wkv_a, *wkv_a, x_TD)};
}

Value LatentAttention::Config::queries(Trace& trace, Value q) const {
  const int64_t head = qk_nope_head_dim + qk_rope_head_dim;
  if (q_lora_rank != 0) q = call(trace, names->wq_b, *wq_b, call(trace, names->q_norm, *q_norm, q));
  q = ops::reshape(q, {q.dim(0), n_heads, head});
  const std::array parts = {
      ops::slice_dim(q, 2, 0, qk_nope_head_dim),
      call(trace, "rope", *rope, ops::slice_dim(q, 2, qk_nope_head_dim, head))};
  return ops::concatenate(parts, 2);
}

Value LatentAttention::Config::forward(Trace& trace, Value x_TD) const {
  const int64_t t = x_TD.dim(0), head = qk_nope_head_dim + qk_rope_head_dim;
  const auto [q, kv] = project(trace, x_TD);
  const Value q_TNH = queries(trace, q);
  const Value latent_TC =
      call(trace, names->kv_norm, *kv_norm, ops::slice_dim(kv, 1, 0, kv_lora_rank));
  const Value rotary =
      ops::reshape(ops::slice_dim(kv, 1, kv_lora_rank, kv.dim(1)), {t, 1, qk_rope_head_dim});
  const Value rotary_TNR =
      ops::broadcast_in_dim(ops::reshape(call(trace, "rope", *rope, rotary), {t, qk_rope_head_dim}),
                            {t, n_heads, qk_rope_head_dim}, {0, 2});
  const Value heads = ops::reshape(call(trace, names->wkv_b, *wkv_b, latent_TC),
                                   {t, n_heads, qk_nope_head_dim + v_head_dim});
  const std::array key_parts = {ops::slice_dim(heads, 2, 0, qk_nope_head_dim), rotary_TNR};
  const Value k_TNH = ops::concatenate(key_parts, 2);
  const Value v_TNV = ops::slice_dim(heads, 2, qk_nope_head_dim, qk_nope_head_dim + v_head_dim);
  const ops::AttentionOptions options{
      .scale = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(head)),
      .seq_len = trace.options().seq_len,
      .documents = document_mask};
  const Value o_TNV =
      trace.options().cached
          ? ops::attention_cached(q_TNH, trace.cached("k", k_TNH), trace.cached("v", v_TNV),
                                  trace.cache_start(), options)
          : ops::attention(q_TNH, k_TNH, v_TNV, trace.positions(), options);
  return call(trace, names->wo, *wo, ops::reshape(o_TNV, {t, n_heads * v_head_dim}));
}

void LatentAttention::Config::fields(Visitor& v) {
  v.names(names);
  v("n_heads", n_heads, "heads", at_least(1));
  v("q_lora_rank", q_lora_rank, "width of the latent of queries, 0 = none");
  v("kv_lora_rank", kv_lora_rank, "width of the latent of keys and values", at_least(1));
  v("qk_nope_head_dim", qk_nope_head_dim, "elements of a query head that do not rotate");
  v("qk_rope_head_dim", qk_rope_head_dim, "elements of a query head that rotate");
  v("v_head_dim", v_head_dim, "elements of a value head", at_least(1));
  if (q_lora_rank == 0) {
    v(names->wq, wq, "query projection");
  } else {
    v(names->wq_a, wq_a, "projection to the latent of queries");
    v(names->q_norm, q_norm, "norm of the latent of queries");
    v(names->wq_b, wq_b, "queries from their latent");
  }
  v(names->wkv_a, wkv_a, "projection to the latent and the rotary key");
  v(names->kv_norm, kv_norm, "norm of the latent");
  v(names->wkv_b, wkv_b, "keys and values from the latent");
  v(names->wo, wo, "output projection");
  v("rope", rope, "rotary embedding");
  v("scale", scale, "of the scores; 0 = (nope + rope)^-0.5");
  v("document_mask", document_mask, "tokens see their own document only");
}

}  // namespace rhea::nn
