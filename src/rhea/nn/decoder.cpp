// T tokens, D model dim, V vocabulary
#include "rhea/nn/decoder.h"

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/nn/losses.h"
#include "rhea/nn/mla.h"
#include "rhea/ops/ops.h"

namespace rhea::nn {
namespace {

// x * factor with the product alone rounded to x's dtype.
Value scaled(Value x, double factor) {
  if (factor == 1) return x;
  return ops::convert(ops::multiply(ops::convert(x, DType::f32), factor), x.dtype());
}

Value capped(const Decoder::Config& model, Value logits_TV) {
  if (model.logit_softcap <= 0) return logits_TV;
  return ops::multiply(ops::tanh(ops::multiply(logits_TV, 1 / model.logit_softcap)),
                       model.logit_softcap);
}

}  // namespace

Value TransformerBlock::Config::branch(Trace& trace, std::string_view name,
                                       const Branch::Config& module, std::string_view post_name,
                                       const Slot<Norm::Config>& post, Value x_TD) const {
  Value y_TD = call(trace, name, module, x_TD);
  if (post) y_TD = call(trace, post_name, *post, y_TD);
  return scaled(y_TD, residual_multiplier);
}

Value TransformerBlock::Config::forward(Trace& trace, Value x_TD) const {
  const Value a_TD =
      attention_norm ? call(trace, names->attention_norm, *attention_norm, x_TD) : x_TD;
  const Value h_TD = x_TD + branch(trace, names->attention, *attention, names->post_attention_norm,
                                   post_attention_norm, a_TD);
  const Value in_TD = parallel ? x_TD : h_TD;
  Value f_TD = parallel ? a_TD : h_TD;
  if (ffn_norm) f_TD = call(trace, names->ffn_norm, *ffn_norm, in_TD);
  return h_TD + branch(trace, names->feed_forward, *feed_forward, names->post_ffn_norm,
                       post_ffn_norm, f_TD);
}

void TransformerBlock::Config::fields(Visitor& v) {
  v.names(names);
  if (attention_norm) v(names->attention_norm, attention_norm, "norm before attention");
  v(names->attention, attention, "attention", required);
  if (post_attention_norm)
    v(names->post_attention_norm, post_attention_norm, "norm of what attention gives");
  if (ffn_norm) v(names->ffn_norm, ffn_norm, "norm before the feed-forward");
  // Without a scope of its own the feed-forward's projections are children of the block.
  if (!names->feed_forward.empty())
    v(names->feed_forward, feed_forward, "feed-forward", required);
  else
    v.inlined(kNativeNames.feed_forward, feed_forward);
  if (post_ffn_norm) v(names->post_ffn_norm, post_ffn_norm, "norm of what the feed-forward gives");
  v("parallel", parallel, "both branches read the block's input");
  v("residual_multiplier", residual_multiplier, "of what a branch adds");
}

int64_t Decoder::Config::max_positions() const {
  int64_t limit = 0;
  const auto bound = [&](int64_t positions) {
    if (positions > 0) limit = limit == 0 ? positions : std::min(limit, positions);
  };
  if (learned_positions) bound(pos_embeddings->num_embeddings - position_offset);
  for (const auto& layer : layers) {
    const auto* attention = layer->attention.as<Attention::Config>();
    if (attention != nullptr && attention->position_bias)
      bound(attention->position_bias->max_positions);
    const auto* latent = layer->attention.as<LatentAttention::Config>();
    const auto* rope = attention != nullptr ? attention->rope.as<RopeFields>()
                       : latent != nullptr  ? latent->rope.as<RopeFields>()
                                            : nullptr;
    if (rope != nullptr && !rope->spec().depends_on_length()) bound(rope->max_position_embeddings);
  }
  return limit;
}

std::string Decoder::Config::embedding_fqn() const {
  const std::string_view dot = names->prefix.empty() ? "" : ".";
  return fmt::format("{}{}{}.weight", names->prefix, dot, names->tok_embeddings);
}

Value Decoder::Config::embed(Trace& trace) const {
  Value x_TD = call(trace, names->tok_embeddings, *tok_embeddings, trace.tokens());
  if (embedding_multiplier != 1)
    x_TD = round_embedding_multiplier ? ops::multiply(x_TD, embedding_multiplier)
                                      : scaled(x_TD, embedding_multiplier);
  if (projected) x_TD = call(trace, names->project_in, *project_in, x_TD);
  if (learned_positions) {
    Value places_T = trace.positions();
    if (position_offset != 0)
      places_T =
          places_T + trace.graph().constant(static_cast<double>(position_offset), places_T.type());
    x_TD = x_TD + call(trace, names->positions, *pos_embeddings, places_T);
  }
  return embedding_norm ? call(trace, names->embedding_norm, *embedding_norm, x_TD) : x_TD;
}

Value Decoder::Config::forward(Trace& trace) const {
  if (!names->prefix.empty()) trace.graph().push_scope(names->prefix);
  Value x_TD = embed(trace);
  {
    const ir::Scope scope(trace.graph(), names->layers);
    for (size_t i = 0; i < layers.size(); ++i)
      x_TD = call(trace, fmt::format("{}", i), *layers[i], x_TD);
  }
  if (norm) x_TD = call(trace, names->norm, *norm, x_TD);
  if (projected) x_TD = call(trace, names->project_out, *project_out, x_TD);
  if (!names->prefix.empty()) trace.graph().pop_scope();
  return scaled(x_TD, logit_scale);
}

Value Decoder::Config::head_weight(Trace& trace) const {
  if (!tie_word_embeddings) {
    const ir::Scope scope(trace.graph(), names->lm_head);
    return trace.parameter("weight", {lm_head->out_features, lm_head->in_features},
                           lm_head->init.init());
  }
  return trace.parameter(embedding_fqn(),
                         {tok_embeddings->num_embeddings, tok_embeddings->embedding_dim},
                         tok_embeddings->init.init());
}

void Decoder::Config::fields(Visitor& v) {
  v.names(names);
  v("tie_word_embeddings", tie_word_embeddings, "the head uses the embedding's matrix");
  v(names->tok_embeddings, tok_embeddings, "token embedding");
  v("embedding_multiplier", embedding_multiplier, "of the embeddings");
  v("round_embedding_multiplier", round_embedding_multiplier,
    "the multiplier is rounded to the compute dtype first");
  v("learned_positions", learned_positions, "a row per position is added to the embedding");
  if (learned_positions) {
    v(names->positions, pos_embeddings, "embedding of positions");
    v("position_offset", position_offset, "row of position 0");
  }
  v("projected", projected, "the blocks have another width than the embedding");
  if (projected) {
    v(names->project_in, project_in, "from the embedding to the blocks");
    v(names->project_out, project_out, "from the blocks to the head");
  }
  if (embedding_norm) v(names->embedding_norm, embedding_norm, "norm of the embedding");
  v(names->layers, layers, "transformer blocks");
  if (norm) v(names->norm, norm, "norm before the head");
  v(names->lm_head, lm_head, "head; its weight is unused when tied");
  v("logit_scale", logit_scale, "of the logits");
  v("logit_softcap", logit_softcap, "bound of the logits, 0 = none");
  if (!trainable.empty()) v("trainable", trainable, "which parameters are trained");
}

Value language_model_loss(Trace& trace, const Decoder::Config& model, int64_t num_chunks) {
  if (num_chunks == 0) return traced_loss(trace, model, CrossEntropyLossConfig{});
  ChunkedLossConfig chunked;
  chunked.num_chunks = num_chunks;
  return traced_loss(trace, model, chunked);
}

Value plain_head_weight(Trace& trace, const Decoder::Config& model) {
  const auto& replaced = model.lm_head->replaced;
  const Linear::Config& base = model.lm_head->base_layer();
  const bool is_plain = typeid(base) == typeid(Linear::Config);
  if (!model.tie_word_embeddings) return is_plain && !replaced ? model.head_weight(trace) : Value();
  // A forward of its own would not be called.
  if (replaced && !is_plain)
    throw Error(
        "Override '{}' makes {} a {}, but this model multiplies with the embedding's matrix "
        "(tie_word_embeddings) and takes only bias and adapter from there; make it a Linear.Config "
        "or an adapter around one, or leave it out by fqns and override the embedding",
        replaced->by, replaced->path, type_name(base));
  return model.head_weight(trace);
}

// The scale of the logits comes before the product, on h: the same function, and the loss stays one
// over chunks of logits. The bias takes it here.
std::optional<Value> head_bias(Trace& trace, const Decoder::Config& model) {
  if (!model.lm_head->bias) return {};
  const Value b_V = trace.parameter("bias", {model.vocab_size()}, Init::zeros());
  return scaled(ops::convert(b_V, DType::f32), model.logit_scale);
}

Value head_logits(Trace& trace, const Decoder::Config& model, Value h_TD, Value w_VD) {
  if (!w_VD.valid())
    return capped(model, ops::convert(call(trace, "", *model.lm_head, h_TD), DType::f32));
  const Value product_TV = model.lm_head->adapted(trace, h_TD, ops::linear(h_TD, w_VD));
  Value z_TV = ops::convert(product_TV, DType::f32);
  if (const auto bias_V = head_bias(trace, model))
    z_TV = z_TV + ops::broadcast_in_dim(*bias_V, z_TV.shape(), {1});
  return capped(model, z_TV);
}

Value logits(Trace& trace, const Decoder::Config& model, std::optional<Value> rows_R) {
  Value h_TD = call(trace, "", model);
  const Value w_VD = plain_head_weight(trace, model);
  const ir::Scope scope(trace.graph(), model.names->lm_head);
  if (rows_R) h_TD = ops::embedding(h_TD, *rows_R);
  return head_logits(trace, model, h_TD, w_VD);
}

}  // namespace rhea::nn
