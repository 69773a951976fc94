#include "rhea/models/hf/gpt.h"

namespace rhea::models::hf {

std::optional<int64_t> read_spelled(Fields& fields, std::initializer_list<std::string_view> names,
                                    int64_t largest) {
  std::optional<int64_t> found;
  std::string_view found_as;
  for (const auto name : names) {
    if (!fields.given(name)) {
      fields.ignore({name});
      continue;
    }
    const int64_t value = fields.integer(name, largest);
    if (found && *found != value)
      throw fields.error(fmt::format("{} is {} and {} is {}: two spellings of one size", found_as,
                                     *found, name, value));
    found = value;
    found_as = name;
  }
  return found ? found : fields.maybe_integer(*names.begin(), largest);
}

int64_t require_spelled(Fields& fields, std::initializer_list<std::string_view> names,
                        int64_t largest) {
  const auto value = read_spelled(fields, names, largest);
  if (!value) throw fields.error(fmt::format("{} is missing", *names.begin()));
  return *value;
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
  sizes.dim = require_spelled(fields, {"n_embd", "hidden_size"}, kLargestSize);
  sizes.n_layers = require_spelled(fields, {"n_layer", "num_hidden_layers"}, kMostLayers);
  sizes.n_heads = sizes.n_kv_heads =
      require_spelled(fields, {"n_head", "num_attention_heads"}, kLargestSize);
  sizes.num_positions =
      require_spelled(fields, {"n_positions", "max_position_embeddings"}, kMostPositions);
  sizes.head_dim = share_of_heads(fields, sizes);
  sizes.hidden_dim = fields.maybe_integer("n_inner").value_or(4 * sizes.dim);
  sizes.vocab_size = fields.integer("vocab_size", kLargestVocabulary);
  sizes.norm_eps = read_eps(fields, "layer_norm_epsilon");
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

void use_plain_feed_forward(nn::Decoder::Config& model, const std::string& activation) {
  for_each_block(model, [&](nn::TransformerBlock::Config& block, auto&, int64_t) {
    const auto* gated = block.feed_forward.as<nn::FeedForward::Config>();
    RHEA_CHECK(gated != nullptr, "use_plain_feed_forward: the feed-forward is no gated one");
    nn::PlainFeedForward::Config plain;
    plain.names = gated->names;
    plain.activation = activation;
    plain.w1 = gated->w1;
    plain.w2 = gated->w2;
    block.feed_forward = plain;
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
