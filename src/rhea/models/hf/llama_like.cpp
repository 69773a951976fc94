// Llama's blocks with multipliers, layers without rotary embedding, or other pairs.
#include <array>

#include "rhea/models/hf/moe.h"
#include "rhea/models/hf/table.h"

namespace rhea::models::hf {
namespace {

nn::Decoder::Config smollm3(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = fields.flag("attention_bias");
  sizes.mlp_bias = fields.flag("mlp_bias");
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  set_activation(model, read_activation(fields));
  // 1: rotates, 0: has no rotary embedding.
  auto rotates = fields.integers("no_rope_layers");
  const int64_t interval = fields.integer("no_rope_layer_interval");
  if (rotates.empty()) {
    for (int64_t i = 0; i < sizes.n_layers; ++i) rotates.push_back((i + 1) % interval != 0);
  }
  if (static_cast<int64_t>(rotates.size()) != sizes.n_layers)
    throw fields.error(fmt::format("no_rope_layers has {} entries for num_hidden_layers = {}",
                                   rotates.size(), sizes.n_layers));
  for_each_block(model, [&](auto&, nn::Attention::Config& attention, int64_t layer) {
    if (rotates[static_cast<size_t>(layer)] == 0) attention.rope = {};
  });
  const bool slides = fields.flag("use_sliding_window");
  const int64_t window = read_window(fields, 0);  // 0 where nothing slides
  // Layers that the file names have their window with or without use_sliding_window.
  const auto sliding = read_sliding_layers(fields, sizes.n_layers, window, [&](int64_t layer) {
    return slides && rotates[static_cast<size_t>(layer)] == 0;
  });
  set_windows(model, window, sliding);
  fields.ignore({"max_window_layers"});
  return model;
}

// The multipliers of Granite.
void read_multipliers(Fields& fields, nn::Decoder::Config& model) {
  model.embedding_multiplier = fields.number("embedding_multiplier");
  model.logit_scale = 1 / read_positive(fields, "logits_scaling");
  const double residual = fields.number("residual_multiplier");
  const double scale = read_positive(fields, "attention_multiplier");
  for_each_block(
      model, [&](nn::TransformerBlock::Config& block, nn::Attention::Config& attention, int64_t) {
        block.residual_multiplier = residual;
        attention.scale = scale;
      });
}

nn::Decoder::Config granite(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = fields.flag("attention_bias");
  sizes.mlp_bias = fields.flag("mlp_bias");
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  set_activation(model, read_activation(fields));
  read_multipliers(fields, model);
  return model;
}

constexpr nn::DecoderNames granitemoe_names() {
  nn::DecoderNames names = nn::kHuggingFaceNames;
  names.feed_forward = "block_sparse_moe";
  return names;
}
constexpr nn::MoeNames kGraniteMoeNames{
    .gate = "router.layer", .w13 = "input_linear.weight", .w2_joined = "output_linear.weight"};

nn::Decoder::Config granitemoe(Fields& fields) {
  static constexpr nn::DecoderNames kNames = granitemoe_names();
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = fields.flag("attention_bias");
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim), kNames);
  read_multipliers(fields, model);
  Mixture mixture;
  mixture.names = &kGraniteMoeNames;
  mixture.router.num_experts = read_experts(fields);
  mixture.router.top_k = read_top_k(fields, mixture.router.num_experts);
  mixture.router.score = "softmax_of_chosen";
  mixture.hidden_dim = sizes.hidden_dim;
  nn::JoinedExperts::Config experts;
  experts.activation = read_activation(fields);
  mixture.joined = &experts;
  read_router_losses(fields);
  set_mixtures(model, mixture, [](int64_t) { return true; });
  return model;
}

nn::Decoder::Config helium(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = fields.flag("attention_bias");
  sizes.mlp_bias = fields.flag("mlp_bias");
  sizes.interleaved_rope = true;
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  set_activation(model, read_activation(fields));
  return model;
}

nn::Decoder::Config ernie4_5(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = sizes.mlp_bias = fields.flag("use_bias");
  sizes.interleaved_rope = true;
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  set_activation(model, read_activation(fields));
  return model;
}

constexpr nn::DecoderNames hunyuan_names() {
  nn::DecoderNames names = nn::kHuggingFaceNames;
  names.q_norm = "query_layernorm";
  names.k_norm = "key_layernorm";
  return names;
}

nn::Decoder::Config hunyuan_v1_dense(Fields& fields) {
  static constexpr nn::DecoderNames kNames = hunyuan_names();
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = fields.flag("attention_bias");
  sizes.qk_norm = true;
  // What published files repeat of the family's other models.
  fields.only({{"use_qk_norm", "true"},
               {"use_rotary_pos_emb", "true"},
               {"use_cla", "false"},
               {"mlp_bias", "false"},
               {"add_classification_head", "false"},
               {"norm_type", "\"rms\""}});
  fields.ignore({"attention_head_dim", "cla_share_factor", "class_num", "dense_list", "pool_type",
                 "org_vocab_size", "im_start_id", "im_end_id", "im_newline_id", "mask_init_id",
                 "text_start_id", "text_end_id", "image_token_id"});
  auto model = llama_decoder(sizes, read_alpha_rope(fields, sizes.head_dim), kNames);
  set_activation(model, read_activation(fields));
  for_each_block(model, [](auto&, nn::Attention::Config& attention, int64_t) {
    attention.norm_after_rope = true;
  });
  return model;
}

}  // namespace

std::span<const Row> llama_like_rows() {
  static const std::array kRows = {
      Row{"smollm3",
          {"SmolLM3ForCausalLM"},
          R"({"pad_token_id": 128004, "hidden_size": 2048, "intermediate_size": 11008,
 "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 4,
 "vocab_size": 128256, "rms_norm_eps": 1e-6, "max_position_embeddings": 32768,
 "hidden_act": "silu", "rope_theta": 2e6, "tie_word_embeddings": true, "attention_bias": false,
 "mlp_bias": false, "use_sliding_window": false, "no_rope_layer_interval": 4})",
          smollm3},
      Row{"granite",
          {"GraniteForCausalLM"},
          R"({"hidden_size": 4096, "intermediate_size": 11008,
 "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000, "rms_norm_eps": 1e-6,
 "max_position_embeddings": 2048, "hidden_act": "silu", "tie_word_embeddings": false,
 "attention_bias": false, "mlp_bias": false, "embedding_multiplier": 1, "logits_scaling": 1,
 "residual_multiplier": 1, "attention_multiplier": 1})",
          granite},
      Row{"granitemoe",
          {"GraniteMoeForCausalLM"},
          R"({"hidden_size": 4096, "intermediate_size": 11008,
 "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000, "rms_norm_eps": 1e-6,
 "max_position_embeddings": 2048, "hidden_act": "silu", "tie_word_embeddings": false,
 "attention_bias": false, "embedding_multiplier": 1, "logits_scaling": 1,
 "residual_multiplier": 1, "attention_multiplier": 1, "num_local_experts": 8,
 "num_experts_per_tok": 2})",
          granitemoe,
          {{"num_experts", {"num_local_experts", "num_experts"}}}},
      Row{"helium",
          {"HeliumForCausalLM"},
          R"({"pad_token_id": 3, "hidden_size": 2560, "intermediate_size": 7040,
 "num_hidden_layers": 24, "num_attention_heads": 20, "num_key_value_heads": 20, "head_dim": 128,
 "vocab_size": 48000, "rms_norm_eps": 1e-8, "max_position_embeddings": 4096, "hidden_act": "silu",
 "rope_theta": 1e5, "tie_word_embeddings": false, "attention_bias": false, "mlp_bias": false})",
          helium},
      Row{"ernie4_5",
          {"Ernie4_5ForCausalLM"},
          R"({"pad_token_id": 0, "hidden_size": 1024,
 "intermediate_size": 3072, "num_hidden_layers": 18, "num_attention_heads": 16,
 "num_key_value_heads": 2, "head_dim": 128, "vocab_size": 103424, "rms_norm_eps": 1e-5,
 "max_position_embeddings": 131072, "hidden_act": "silu", "rope_theta": 5e5,
 "tie_word_embeddings": true, "use_bias": false})",
          ernie4_5},
      Row{"hunyuan_v1_dense",
          {"HunYuanDenseV1ForCausalLM"},
          R"({"pad_token_id": 0, "hidden_size": 4096,
 "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
 "vocab_size": 290943, "rms_norm_eps": 1e-5, "max_position_embeddings": 2048,
 "hidden_act": "silu", "tie_word_embeddings": false, "attention_bias": false})",
          hunyuan_v1_dense},
  };
  return kRows;
}

}  // namespace rhea::models::hf
