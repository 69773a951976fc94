// T tokens, D model dim, N query heads, K kv heads, H head dim
#include "rhea/nn/attention.h"

#include <cmath>

#include "rhea/ops/ops.h"

namespace rhea::nn {

Value QKV::Config::project(Trace& trace, Value x_TD,
                           const std::vector<std::pair<std::string_view, int64_t>>& parts,
                           std::string_view own_name) const {
  std::vector<Trace::PartSpec> weights, biases;
  int64_t rows = 0;
  for (const auto& [name, count] : parts) {
    weights.push_back({fmt::format("{}.weight", name), count, init.init()});
    biases.push_back({fmt::format("{}.bias", name), count, Init::zeros()});
    rows += count;
  }
  const Value y =
      ops::linear(x_TD, trace.parameter(fmt::format("{}.weight", own_name), {rows, dim}, weights));
  if (!bias) return y;
  const Value b = trace.parameter(fmt::format("{}.bias", own_name), {rows}, biases);
  return y + ops::broadcast_in_dim(b, y.shape(), {1});
}

QKV::Config::Result QKV::Config::forward(Trace& trace, Value x_TD) const {
  const int64_t t = x_TD.dim(0);
  const int64_t q_rows = n_heads * head_dim, kv_rows = n_kv_heads * head_dim;
  const auto heads = [&](Value part, int64_t count) {
    return ops::reshape(part, {t, count, head_dim});
  };
  if (!fused) {
    return {heads(project(trace, x_TD, {{names->wq, q_rows}}, names->wq), n_heads),
            heads(project(trace, x_TD, {{names->wk, kv_rows}}, names->wk), n_kv_heads),
            heads(project(trace, x_TD, {{names->wv, kv_rows}}, names->wv), n_kv_heads)};
  }
  const Value y = project(
      trace, x_TD, {{names->wq, q_rows}, {names->wk, kv_rows}, {names->wv, kv_rows}}, "wqkv");
  return {heads(ops::slice_dim(y, 1, 0, q_rows), n_heads),
          heads(ops::slice_dim(y, 1, q_rows, q_rows + kv_rows), n_kv_heads),
          heads(ops::slice_dim(y, 1, q_rows + kv_rows, q_rows + 2 * kv_rows), n_kv_heads)};
}

void QKV::Config::fields(Visitor& v) {
  v("dim", dim, "model dim");
  v("n_heads", n_heads, "query heads");
  v("n_kv_heads", n_kv_heads, "key and value heads");
  v("head_dim", head_dim, "elements of a head");
  v("bias", bias, "adds biases");
  v("fused", fused, "one weight for all three projections");
  v("init", init, "how the weights start");
}

Value Attention::Config::forward(Trace& trace, Value x_TD) const {
  QKV::Config::Result qkv;
  if (names->qkv.empty()) {
    qkv = qkv_linear->forward(trace, x_TD);
  } else {
    const ir::Scope scope(trace.graph(), names->qkv);
    qkv = qkv_linear->forward(trace, x_TD);
  }
  if (qk_norm) {
    qkv.q_TNH = call(trace, names->q_norm, *q_norm, qkv.q_TNH);
    qkv.k_TKH = call(trace, names->k_norm, *k_norm, qkv.k_TKH);
  }
  if (rope) {
    qkv.q_TNH = call(trace, "rope", *rope, qkv.q_TNH);
    qkv.k_TKH = call(trace, "rope", *rope, qkv.k_TKH);
  }
  const double score_scale =
      scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(qkv_linear->head_dim));
  Value o_TNH;
  if (trace.options().cached) {
    o_TNH =
        ops::attention_cached(qkv.q_TNH, trace.cached("k", qkv.k_TKH), trace.cached("v", qkv.v_TKH),
                              trace.cache_start(), score_scale, sliding_window, softcap);
  } else {
    const ops::AttentionOptions options{.scale = score_scale,
                                        .seq_len = trace.options().seq_len,
                                        .window = sliding_window,
                                        .softcap = softcap,
                                        .documents = document_mask};
    o_TNH = ops::attention(qkv.q_TNH, qkv.k_TKH, qkv.v_TKH, trace.positions(), options);
  }
  const Value joined = ops::reshape(o_TNH, {o_TNH.dim(0), o_TNH.dim(1) * o_TNH.dim(2)});
  return call(trace, names->wo, *wo, joined);
}

void Attention::Config::fields(Visitor& v) {
  v(names->qkv.empty() ? std::string_view("qkv") : names->qkv, qkv_linear,
    "query, key and value projections");
  v(names->wo, wo, "output projection");
  v("qk_norm", qk_norm, "normalises each head of q and k");
  v(names->q_norm, q_norm, "norm of the query heads");
  v(names->k_norm, k_norm, "norm of the key heads");
  v("rope", rope, "rotary embedding");
  v("scale", scale, "of the scores; 0 = head_dim^-0.5");
  v("sliding_window", sliding_window, "tokens a query sees, itself included; 0 = all before it");
  v("document_mask", document_mask, "tokens see their own document only");
  v("softcap", softcap, "bound of the scores, 0 = none");
}

}  // namespace rhea::nn
