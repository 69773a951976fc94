// BLOOM and MPT: biases by distance in the place of positions.
#include <array>

#include "rhea/models/hf/gpt.h"
#include "rhea/models/hf/post_norm.h"
#include "rhea/models/hf/table.h"

namespace rhea::models::hf {
namespace {

constexpr nn::DecoderNames bloom_names() {
  nn::DecoderNames names = nn::kHuggingFaceNames;
  names.prefix = "transformer";
  names.tok_embeddings = "word_embeddings";
  names.embedding_norm = "word_embeddings_layernorm";
  names.layers = "h";
  names.attention = "self_attention";
  names.wqkv = "query_key_value";
  names.wo = "dense";
  names.w1 = "dense_h_to_4h";
  names.w2 = "dense_4h_to_h";
  names.norm = "ln_f";
  return names;
}

constexpr nn::DecoderNames mpt_names() {
  nn::DecoderNames names = nn::kHuggingFaceNames;
  names.prefix = "transformer";
  names.tok_embeddings = "wte";
  names.layers = "blocks";
  names.attention_norm = "norm_1";
  names.attention = "attn";
  names.wqkv = "Wqkv";
  names.wo = "out_proj";
  names.ffn_norm = "norm_2";
  names.feed_forward = "ffn";
  names.w1 = "up_proj";
  names.w2 = "down_proj";
  names.norm = "norm_f";
  return names;
}

// The feed-forward is four times as wide as the model in both families.
DecoderSizes sizes_of(Fields& fields) {
  DecoderSizes sizes;
  sizes.dim = fields.spelled("hidden_size");
  sizes.n_layers = fields.spelled("num_hidden_layers", kMostLayers);
  sizes.n_heads = sizes.n_kv_heads = fields.spelled("num_attention_heads");
  sizes.head_dim = share_of_heads(fields, sizes);
  sizes.hidden_dim = 4 * sizes.dim;
  sizes.vocab_size = fields.integer("vocab_size", kLargestVocabulary);
  sizes.norm_eps = read_eps(fields);
  sizes.tied = fields.flag("tie_word_embeddings");
  fields.only("is_encoder_decoder", "false");
  fields.only("chunk_size_feed_forward", "0");
  fields.ignore({"is_decoder"});
  return sizes;
}

nn::Alibi::Config alibi(const DecoderSizes& sizes) {
  nn::Alibi::Config made;
  made.n_heads = sizes.n_heads;
  return made;
}

nn::Decoder::Config bloom(Fields& fields) {
  static constexpr nn::DecoderNames kNames = bloom_names();
  DecoderSizes sizes = sizes_of(fields);
  sizes.qkv_bias = sizes.o_bias = sizes.mlp_bias = true;
  auto model = llama_decoder(sizes, Rope(), kNames);
  const auto norm = layer_norm(sizes.dim, sizes.norm_eps);
  use_layer_norms(model, norm);
  model.embedding_norm = norm;
  set_plain_feed_forward(model, "gelu_tanh");
  join_qkv(model, true);
  use_alibi(model, alibi(sizes));
  if (fields.flag("apply_residual_connection_post_layernorm"))
    replace_blocks<NormedResidualBlock>(model);
  fields.dropout({"hidden_dropout", "attention_dropout"});
  fields.only("n_inner", "null");
  // How the program that trained it computed, and the length of its rows.
  fields.only("slow_but_exact", "false");  // true leaves out biases with pretraining_tp above 1
  fields.ignore({"attention_softmax_in_fp32", "bias_dropout_fusion", "masked_softmax_fusion",
                 "offset_alibi", "skip_bias_add", "skip_bias_add_qkv", "unk_token_id",
                 "seq_length"});
  return model;
}

// Transformers reads some fields of MPT and computes the same whatever they say; where a file asks
// for something else, the model it was trained as is not the one that Transformers makes of it.
void read_attention(Fields& fields, nn::Decoder::Config& model) {
  Fields attention = fields.section("attn_config");
  attention.only("alibi", "true");
  attention.only("alibi_bias_max", "8");
  attention.only("attn_type", "\"multihead_attention\"");
  attention.only("prefix_lm", "false");
  attention.only("qk_ln", "false");
  attention.only("attn_uses_sequence_id", "false");
  attention.only("is_encoder_decoder", "false");
  attention.only("chunk_size_feed_forward", "0");
  attention.dropout({"attn_pdrop"});
  attention.ignore({"attn_impl"});
  const auto scale = attention.maybe_number("softmax_scale");
  const double clip = attention.number_or("clip_qkv", 0);
  if (clip < 0 || (scale && *scale <= 0))
    throw attention.error("clip_qkv must not be negative and softmax_scale must be positive");
  for_each_block(model, [&](auto&, nn::Attention::Config& made, int64_t) {
    if (scale) made.scale = *scale;
    made.clip_qkv = clip;
  });
  attention.refuse_unknown();
}

nn::Decoder::Config mpt(Fields& fields) {
  static constexpr nn::DecoderNames kNames = mpt_names();
  const DecoderSizes sizes = sizes_of(fields);
  auto model = llama_decoder(sizes, Rope(), kNames);
  use_layer_norms(model, layer_norm(sizes.dim, sizes.norm_eps, true, false));
  set_plain_feed_forward(model, "gelu");
  join_qkv(model, false);
  nn::Alibi::Config bias = alibi(sizes);
  bias.max_positions = fields.integer("max_seq_len", kMostPositions);
  use_alibi(model, bias);
  read_attention(fields, model);
  fields.dropout({"resid_pdrop", "emb_pdrop"});
  fields.only("no_bias", "true");
  fields.only("logit_scale", "null");
  fields.only("embedding_fraction", "1.0");
  fields.only("norm_type", "\"low_precision_layernorm\"");
  // The width is four times the model's whatever expansion_ratio says, and there is no table of
  // positions whatever learned_pos_emb says.
  fields.ignore({"expansion_ratio", "learned_pos_emb", "init_device", "init_config", "verbose",
                 "tokenizer_name"});
  return model;
}

}  // namespace

std::span<const Row> bloom_rows() {
  static const std::array kRows = {
      Row{"bloom",
          {"BloomForCausalLM"},
          R"({"vocab_size": 250880, "hidden_size": 64, "n_layer": 2, "n_head": 8,
 "layer_norm_epsilon": 1e-5, "apply_residual_connection_post_layernorm": false,
 "tie_word_embeddings": true})",
          bloom,
          {{"hidden_size", {"hidden_size", "n_embed"}},
           {"num_hidden_layers", {"n_layer", "num_hidden_layers"}},
           {"num_attention_heads", {"n_head", "num_attention_heads"}},
           {"rms_norm_eps", {"layer_norm_epsilon"}}},
          false},
      Row{"mpt",
          {"MptForCausalLM", "MPTForCausalLM"},
          R"({"vocab_size": 50368, "d_model": 2048, "n_heads": 16, "n_layers": 24,
 "max_seq_len": 2048, "layer_norm_epsilon": 1e-5, "tie_word_embeddings": true})",
          mpt,
          {{"hidden_size", {"d_model", "hidden_size"}},
           {"num_hidden_layers", {"n_layers", "num_hidden_layers"}},
           {"num_attention_heads", {"n_heads", "num_attention_heads"}},
           {"rms_norm_eps", {"layer_norm_epsilon"}}},
          false},
  };
  return kRows;
}

}  // namespace rhea::models::hf
