// T tokens, D model dim, V vocabulary
#include "rhea/nn/decoder.h"

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"

namespace rhea::nn {

Value TransformerBlock::Config::forward(Trace& trace, Value x_TD) const {
  const Value a_TD = call(trace, names->attention_norm, *attention_norm, x_TD);
  const Value h_TD = x_TD + call(trace, names->attention, *attention, a_TD);
  const Value f_TD = call(trace, names->ffn_norm, *ffn_norm, h_TD);
  return h_TD + call(trace, names->feed_forward, *feed_forward, f_TD);
}

void TransformerBlock::Config::fields(Visitor& v) {
  v(names->attention_norm, attention_norm, "norm before attention");
  v(names->attention, attention, "attention");
  v(names->ffn_norm, ffn_norm, "norm before the feed-forward");
  v(names->feed_forward, feed_forward, "feed-forward");
}

Value Decoder::Config::forward(Trace& trace) const {
  if (!names->prefix.empty()) trace.graph().push_scope(names->prefix);
  Value x_TD = call(trace, names->tok_embeddings, *tok_embeddings, trace.tokens());
  {
    const ir::Scope scope(trace.graph(), "layers");
    for (size_t i = 0; i < layers.size(); ++i)
      x_TD = call(trace, fmt::format("{}", i), *layers[i], x_TD);
  }
  const Value h_TD = call(trace, names->norm, *norm, x_TD);
  if (!names->prefix.empty()) trace.graph().pop_scope();
  return h_TD;
}

Value Decoder::Config::head_weight(Trace& trace) const {
  if (!tie_word_embeddings) {
    const ir::Scope scope(trace.graph(), names->lm_head);
    return trace.parameter("weight", {lm_head->out_features, lm_head->in_features},
                           lm_head->init.init());
  }
  const std::string name = names->prefix.empty()
                               ? std::string(names->tok_embeddings)
                               : fmt::format("{}.{}", names->prefix, names->tok_embeddings);
  const ir::Scope scope(trace.graph(), name);
  return trace.parameter("weight", {tok_embeddings->num_embeddings, tok_embeddings->embedding_dim},
                         tok_embeddings->init.init());
}

void Decoder::Config::fields(Visitor& v) {
  v("tie_word_embeddings", tie_word_embeddings, "the head uses the embedding's matrix");
  v(names->tok_embeddings, tok_embeddings, "token embedding");
  v("layers", layers, "transformer blocks");
  v(names->norm, norm, "norm before the head");
  v(names->lm_head, lm_head, "head; unused when tied");
}

Value language_model_loss(Trace& trace, const Decoder::Config& model, int64_t num_chunks) {
  const Value h_TD = model.forward(trace);
  const Value w_VD = model.head_weight(trace);
  const Value labels_T = trace.graph().input(kLabels, {DType::i32, {trace.options().num_tokens}});
  const Value scale = trace.graph().input(kLossScale, {DType::f32, {}});
  const ir::Scope scope(trace.graph(), model.names->lm_head);
  if (num_chunks > 0) return ops::linear_cross_entropy(h_TD, w_VD, labels_T, scale, num_chunks);
  return ops::cross_entropy(ops::convert(ops::linear(h_TD, w_VD), DType::f32), labels_T, scale);
}

Value logits(Trace& trace, const Decoder::Config& model) {
  const Value h_TD = model.forward(trace);
  const Value w_VD = model.head_weight(trace);
  const ir::Scope scope(trace.graph(), model.names->lm_head);
  return ops::convert(ops::linear(h_TD, w_VD), DType::f32);
}

}  // namespace rhea::nn
