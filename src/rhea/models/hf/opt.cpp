// OPT: learned positions from row 2 on, projections straight in the block.
#include <array>

#include "rhea/models/hf/gpt.h"
#include "rhea/models/hf/post_norm.h"
#include "rhea/models/hf/table.h"

namespace rhea::models::hf {
namespace {

constexpr int64_t kPositionOffset = 2;

constexpr nn::DecoderNames opt_names() {
  nn::DecoderNames names = nn::kHuggingFaceNames;
  names.prefix = "model.decoder";
  names.attention_norm = "self_attn_layer_norm";
  names.wo = "out_proj";
  names.ffn_norm = "final_layer_norm";
  names.feed_forward = "";
  names.w1 = "fc1";
  names.w2 = "fc2";
  names.norm = "final_layer_norm";
  return names;
}

DecoderSizes read_opt_sizes(Fields& fields) {
  DecoderSizes sizes;
  sizes.dim = fields.integer("hidden_size");
  sizes.n_layers = fields.integer("num_hidden_layers", kMostLayers);
  sizes.n_heads = sizes.n_kv_heads = fields.integer("num_attention_heads");
  sizes.head_dim = share_of_heads(fields, sizes);
  sizes.hidden_dim = fields.integer("ffn_dim");
  sizes.vocab_size = fields.integer("vocab_size", kLargestVocabulary);
  sizes.tied = fields.flag("tie_word_embeddings");
  sizes.qkv_bias = sizes.o_bias = sizes.mlp_bias = fields.flag("enable_bias");
  fields.dropout({"attention_dropout", "dropout", "layerdrop", "activation_dropout"});
  fields.only("is_encoder_decoder", "false");
  fields.only("chunk_size_feed_forward", "0");
  fields.ignore({"init_std", "is_decoder"});
  return sizes;
}

// Embedding and head have their own width, for which two projections make up.
void use_projections(nn::Decoder::Config& model, int64_t width) {
  const int64_t dim = model.tok_embeddings->embedding_dim;
  model.projected = true;
  model.tok_embeddings->embedding_dim = model.lm_head->in_features = width;
  model.project_in = linear(width, dim, false, linear_init());
  model.project_out = linear(dim, width, false, linear_init());
}

nn::Decoder::Config opt(Fields& fields) {
  static constexpr nn::DecoderNames kNames = opt_names();
  const DecoderSizes sizes = read_opt_sizes(fields);
  auto model = llama_decoder(sizes, Rope(), kNames);
  const bool affine = fields.flag("layer_norm_elementwise_affine");
  use_layer_norms(model, layer_norm(sizes.dim, 1e-5, affine, affine));
  set_plain_feed_forward(model, read_activation(fields, "activation_function"));
  use_learned_positions(model, fields.integer("max_position_embeddings", kMostPositions),
                        kPositionOffset);
  const int64_t width = fields.maybe_integer("word_embed_proj_dim").value_or(sizes.dim);
  if (width != sizes.dim) use_projections(model, width);
  const bool norm_before = fields.flag("do_layer_norm_before");
  if (fields.flag("_remove_final_layer_norm") || !norm_before) model.norm = {};
  if (!norm_before) replace_blocks<PostNormBlock>(model);
  return model;
}

}  // namespace

std::span<const Row> opt_rows() {
  static const std::array kRows = {
      Row{"opt",
          {"OPTForCausalLM"},
          R"({"pad_token_id": 1, "vocab_size": 50272, "hidden_size": 768, "num_hidden_layers": 12, "ffn_dim": 3072,
 "max_position_embeddings": 2048, "do_layer_norm_before": true, "_remove_final_layer_norm": false,
 "num_attention_heads": 12, "activation_function": "relu", "enable_bias": true,
 "layer_norm_elementwise_affine": true, "tie_word_embeddings": true})",
          opt,
          {{"intermediate_size", {"ffn_dim"}}}},
  };
  return kRows;
}

}  // namespace rhea::models::hf
