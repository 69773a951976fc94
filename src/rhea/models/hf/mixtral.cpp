// Mixtures of experts whose attention is Llama's or nearly so.
#include <array>

#include "rhea/models/hf/moe.h"
#include "rhea/models/hf/table.h"

namespace rhea::models::hf {
namespace {

constexpr nn::DecoderNames sparse_names() {
  nn::DecoderNames names = nn::kHuggingFaceNames;
  names.feed_forward = "block_sparse_moe";
  return names;
}
constexpr nn::DecoderNames kSparseNames = sparse_names();
constexpr nn::MoeNames kMixtralNames{.w1 = "w1", .w2 = "w2", .w3 = "w3"};
constexpr nn::MoeNames kMiniMaxNames{
    .correction_bias = "e_score_correction_bias", .w1 = "w1", .w2 = "w2", .w3 = "w3"};

bool every_layer(int64_t) { return true; }

// Noise that other trainers put on logits or inputs of routers.
void warn_of_noise(Fields& fields, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (fields.number_or(name, 0) != 0)
      fields.warn(fmt::format("{} = {}: routers are trained without noise", name,
                              fields.number_or(name, 0)));
  }
}

void set_all_windows(Fields& fields, nn::Decoder::Config& model) {
  if (const int64_t window = read_window(fields); window > 0)
    set_windows(model, window, std::vector<bool>(model.layers.size(), true));
}

Mixture read_mixture(Fields& fields, const DecoderSizes& sizes) {
  Mixture mixture;
  mixture.router.num_experts = read_experts(fields);
  mixture.router.top_k = read_top_k(fields, mixture.router.num_experts);
  mixture.hidden_dim = sizes.hidden_dim;
  mixture.activation = read_activation(fields);
  read_router_losses(fields);
  return mixture;
}

nn::Decoder::Config mixtral(Fields& fields) {
  const DecoderSizes sizes = read_sizes(fields);
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim), kSparseNames);
  set_all_windows(fields, model);
  Mixture mixture = read_mixture(fields, sizes);
  mixture.names = &kMixtralNames;
  mixture.router.normalize = true;
  warn_of_noise(fields, {"router_jitter_noise"});
  set_mixtures(model, mixture, every_layer);
  return model;
}

nn::Decoder::Config phimoe(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = fields.flag("attention_bias");
  auto model = llama_decoder(
      sizes, read_rope(fields, sizes.head_dim, {.longrope_magnitudes = true}), kSparseNames);
  set_all_windows(fields, model);
  model.lm_head->bias = fields.flag("lm_head_bias");
  const auto norm = layer_norm(sizes.dim, sizes.norm_eps);
  model.norm = norm;
  for_each_block(model, [&](nn::TransformerBlock::Config& block, auto&, int64_t) {
    block.attention_norm = block.ffn_norm = norm;
  });
  Mixture mixture = read_mixture(fields, sizes);
  mixture.names = &kMixtralNames;
  mixture.router.score = "sparsemixer";
  mixture.router.jitter = fields.number("router_jitter_noise");
  if (mixture.router.jitter < 0)
    throw fields.error(
        fmt::format("router_jitter_noise must not be negative, got {}", mixture.router.jitter));
  if (mixture.router.top_k != 2)
    throw fields.error(fmt::format("num_experts_per_tok must be 2 for the router of phimoe, got {}",
                                   mixture.router.top_k));
  warn_of_noise(fields, {"input_jitter_noise"});
  fields.warn("the router of phimoe takes its best experts; Transformers samples them in training");
  set_mixtures(model, mixture, every_layer);
  return model;
}

nn::Decoder::Config olmoe(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = fields.flag("attention_bias");
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  norm_full_width(model, sizes);
  const double bound = maybe_positive(fields, "clip_qkv");
  for_each_block(
      model, [&](auto&, nn::Attention::Config& attention, int64_t) { attention.clip_qkv = bound; });
  Mixture mixture = read_mixture(fields, sizes);
  mixture.router.normalize = fields.flag("norm_topk_prob");
  set_mixtures(model, mixture, every_layer);
  return model;
}

nn::Decoder::Config minimax_m2(Fields& fields) {
  const DecoderSizes sizes = read_sizes(fields);
  Rope rope = read_rope(fields, sizes.head_dim);
  if (const auto dims = fields.maybe_integer("rotary_dim")) rope.dim = *dims;
  if (rope.dim > sizes.head_dim)
    throw fields.error(
        fmt::format("rotary_dim is {}, a head has {} elements", rope.dim, sizes.head_dim));
  auto model = llama_decoder(sizes, rope, kSparseNames);
  norm_full_width(model, sizes);
  Mixture mixture = read_mixture(fields, sizes);
  mixture.names = &kMiniMaxNames;
  mixture.router.score = "sigmoid";
  mixture.router.correction_bias = true;
  mixture.router.normalize = true;
  warn_of_noise(fields, {"router_jitter_noise"});
  fields.only("scoring_func", "\"sigmoid\"");
  fields.only("use_routing_bias", "true");
  fields.only("use_qk_norm", "true");
  fields.only("qk_norm_type", "\"per_layer\"");
  fields.only("shared_intermediate_size", "0");
  set_mixtures(model, mixture, every_layer);
  return model;
}

constexpr nn::MoeNames kErnieNames{.correction_bias = "moe_statics.e_score_correction_bias"};

nn::Decoder::Config ernie4_5_moe(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  const bool bias = fields.flag("use_bias");
  sizes.qkv_bias = sizes.o_bias = sizes.mlp_bias = bias;
  sizes.interleaved_rope = true;
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  model.lm_head->bias = bias;
  Mixture mixture;
  nn::Router::Config& router = mixture.router;
  router.num_experts = read_experts(fields);
  router.top_k = read_top_k(fields, router.num_experts);
  router.correction_bias = router.correction_bias_is_row = true;
  router.normalize = true;
  router.normalize_min = fields.number("moe_norm_min");
  mixture.names = &kErnieNames;
  mixture.hidden_dim = fields.integer("moe_intermediate_size");
  mixture.activation = read_activation(fields);
  mixture.shared_dim = mixture.hidden_dim *
                       fields.maybe_integer("moe_num_shared_experts", kLargestSize, 0).value_or(0);
  mixture.shared_bias = bias;
  set_activation(model, mixture.activation);
  read_router_losses(fields);
  fields.only("moe_use_aux_free", "true");
  fields.only("moe_gate", "\"topk\"");
  const int64_t first = fields.integer_from("moe_layer_start_index", 0),
                given_last = fields.integer_from("moe_layer_end_index", -1),
                last = given_last == -1 ? sizes.n_layers - 1 : given_last,
                interval = fields.integer("moe_layer_interval");
  set_mixtures(model, mixture, [=](int64_t layer) {
    return (layer + 1) % interval == 0 && layer >= first && layer <= last;
  });
  return model;
}

}  // namespace

std::span<const Row> mixtral_rows() {
  static const std::vector<Spelling> kSpellings = {
      {"num_experts", {"num_local_experts", "num_experts"}}};
  static const std::array kRows = {
      Row{"mixtral",
          {"MixtralForCausalLM"},
          R"({"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
 "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "rms_norm_eps": 1e-5,
 "max_position_embeddings": 131072, "hidden_act": "silu", "rope_theta": 1e6,
 "tie_word_embeddings": false, "num_local_experts": 8, "num_experts_per_tok": 2})",
          mixtral,
          kSpellings},
      Row{"phimoe",
          {"PhimoeForCausalLM", "PhiMoEForCausalLM"},
          R"({"hidden_size": 4096, "intermediate_size": 6400, "num_hidden_layers": 32,
 "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32064, "rms_norm_eps": 1e-5,
 "max_position_embeddings": 131072, "hidden_act": "silu", "rope_theta": 1e6,
 "tie_word_embeddings": false, "attention_bias": false, "lm_head_bias": false,
 "num_local_experts": 16, "num_experts_per_tok": 2, "router_jitter_noise": 0.01})",
          phimoe,
          kSpellings},
      Row{"olmoe",
          {"OlmoeForCausalLM"},
          R"({"pad_token_id": 1, "hidden_size": 2048, "intermediate_size": 2048, "num_hidden_layers": 16,
 "num_attention_heads": 16, "vocab_size": 50304, "rms_norm_eps": 1e-5,
 "max_position_embeddings": 4096, "hidden_act": "silu", "tie_word_embeddings": false,
 "attention_bias": false, "num_experts": 64, "num_experts_per_tok": 8, "norm_topk_prob": false})",
          olmoe,
          {{"num_experts", {"num_experts", "num_local_experts"}}}},
      Row{"minimax_m2",
          {"MiniMaxM2ForCausalLM"},
          R"({"hidden_size": 3072, "intermediate_size": 1536, "num_hidden_layers": 62,
 "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 200064,
 "rms_norm_eps": 1e-6, "max_position_embeddings": 196608, "hidden_act": "silu", "rope_theta": 5e6,
 "tie_word_embeddings": false, "num_local_experts": 256, "num_experts_per_tok": 8})",
          minimax_m2,
          kSpellings},
      Row{"ernie4_5_moe",
          {"Ernie4_5_MoeForCausalLM"},
          R"({"pad_token_id": 0, "hidden_size": 2560, "intermediate_size": 12288, "num_hidden_layers": 28,
 "num_attention_heads": 20, "num_key_value_heads": 4, "vocab_size": 103424, "rms_norm_eps": 1e-5,
 "max_position_embeddings": 131072, "hidden_act": "silu", "rope_theta": 5e5,
 "tie_word_embeddings": true, "use_bias": false, "moe_intermediate_size": 1536, "moe_k": 6,
 "moe_num_experts": 64, "moe_num_shared_experts": 2, "moe_layer_start_index": 1,
 "moe_layer_end_index": -1, "moe_layer_interval": 1, "moe_norm_min": 1e-12})",
          ernie4_5_moe,
          {{"num_experts", {"moe_num_experts", "num_experts"}},
           {"num_experts_per_tok", {"moe_k", "num_experts_per_tok"}}}},
  };
  return kRows;
}

}  // namespace rhea::models::hf
