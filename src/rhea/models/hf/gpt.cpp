#include "rhea/models/hf/gpt.h"

namespace rhea::models::hf {

const std::vector<Spelling>& gpt_spellings() {
  static const std::vector<Spelling> kSpellings = {
      {"hidden_size", {"n_embd", "hidden_size"}},
      {"num_hidden_layers", {"n_layer", "num_hidden_layers"}},
      {"num_attention_heads", {"n_head", "num_attention_heads"}},
      {"max_position_embeddings", {"n_positions", "max_position_embeddings"}},
      {"intermediate_size", {"n_inner"}},
      {"rms_norm_eps", {"layer_norm_epsilon"}}};
  return kSpellings;
}

int64_t share_of_heads(const Fields& fields, const DecoderSizes& sizes) {
  if (sizes.dim % sizes.n_heads != 0)
    throw fields.error(fmt::format("the hidden size ({}) is not divisible by the heads ({})",
                                   sizes.dim, sizes.n_heads));
  return sizes.dim / sizes.n_heads;
}

Rope read_rotary_dim(Fields& fields, int64_t head_dim, int64_t num_positions) {
  Rope rope;
  rope.max_position_embeddings = num_positions;
  rope.dim = fields.integer("rotary_dim");
  if (rope.dim > head_dim || rope.dim % 2 != 0)
    throw fields.error(fmt::format(
        "rotary_dim must be even and at most the {} dims of a head, got {}", head_dim, rope.dim));
  return rope;
}

GptSizes read_gpt_sizes(Fields& fields) {
  GptSizes sizes;
  sizes.dim = fields.spelled("hidden_size");
  sizes.n_layers = fields.spelled("num_hidden_layers", kMostLayers);
  sizes.n_heads = sizes.n_kv_heads = fields.spelled("num_attention_heads");
  sizes.num_positions = fields.spelled("max_position_embeddings", kMostPositions);
  sizes.head_dim = share_of_heads(fields, sizes);
  sizes.hidden_dim = fields.maybe_integer("n_inner").value_or(4 * sizes.dim);
  sizes.vocab_size = fields.integer("vocab_size", kLargestVocabulary);
  sizes.norm_eps = read_eps(fields);
  sizes.tied = fields.flag("tie_word_embeddings");
  fields.dropout({"attn_pdrop", "resid_pdrop", "embd_pdrop"});
  fields.only("add_cross_attention", "false");
  fields.only("is_encoder_decoder", "false");
  fields.only("chunk_size_feed_forward", "0");
  // Of heads for other tasks.
  fields.ignore({"is_decoder", "summary_activation", "summary_first_dropout",
                 "summary_proj_to_labels", "summary_type", "summary_use_proj"});
  return sizes;
}

void use_layer_norms(nn::Decoder::Config& model, const nn::LayerNorm::Config& norm) {
  model.norm = norm;
  for_each_block(model, [&](nn::TransformerBlock::Config& block, auto&, int64_t) {
    block.attention_norm = block.ffn_norm = norm;
  });
}

void use_one_parallel_norm(nn::Decoder::Config& model) {
  for_each_block(model, [](nn::TransformerBlock::Config& block, auto&, int64_t) {
    block.parallel = true;
    block.ffn_norm = {};
  });
}

void join_qkv(nn::Decoder::Config& model, bool by_kv_head) {
  join_qkv(model);
  for_each_block(model, [&](auto&, nn::Attention::Config& attention, int64_t) {
    attention.qkv_linear.as<nn::JoinedQKV::Config>()->by_kv_head = by_kv_head;
  });
}

void drop_rope(nn::Decoder::Config& model) {
  for_each_block(model,
                 [](auto&, nn::Attention::Config& attention, int64_t) { attention.rope = {}; });
}

void use_alibi(nn::Decoder::Config& model, const nn::Alibi::Config& alibi) {
  for_each_block(model, [&](auto&, nn::Attention::Config& attention, int64_t) {
    attention.rope = {};
    attention.position_bias = alibi;
  });
}

void use_learned_positions(nn::Decoder::Config& model, int64_t num_positions, int64_t offset) {
  drop_rope(model);
  model.learned_positions = true;
  model.position_offset = offset;
  model.pos_embeddings->num_embeddings = num_positions + offset;
  model.pos_embeddings->embedding_dim = model.norm->dim;
  model.pos_embeddings->init = linear_init();
}

}  // namespace rhea::models::hf
