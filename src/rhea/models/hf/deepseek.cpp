// DeepSeek's latent attention and mixtures, and the models that took the mixtures over.
#include <array>
#include <cmath>

#include "rhea/models/hf/moe.h"
#include "rhea/models/hf/table.h"
#include "rhea/nn/mla.h"

namespace rhea::models::hf {
namespace {

constexpr double kLatentEps = 1e-6;  // whatever rms_norm_eps says

// The layers behind the last are for predicting several tokens; nothing here reads them.
void skip_mtp_layers(Fields& fields, nn::Decoder::Config& model) {
  model.num_mtp_layers = fields.spelled("num_mtp_layers", kMostLayers, 0);
  if (model.num_mtp_layers > 0)
    fields.warn(fmt::format(
        "num_nextn_predict_layers = {}: layers for predicting more than one token are skipped",
        model.num_mtp_layers));
}

std::function<bool(int64_t)> read_dense_prefix(Fields& fields) {
  const int64_t dense = fields.integer_from("first_k_dense_replace", 0);
  return [dense](int64_t layer) { return layer >= dense; };
}

// None where n_shared_experts is 0 (whose matrices without elements files may hold) or null.
void read_shared(Fields& fields, Mixture& mixture) {
  mixture.hidden_dim = fields.integer("moe_intermediate_size");
  mixture.shared_dim =
      mixture.hidden_dim * fields.maybe_integer("n_shared_experts", kLargestSize, 0).value_or(0);
}

// The softmax scale takes the magnitude of all dims squared.
double score_scale(const Rope& rope, int64_t head) {
  double scale = 1 / std::sqrt(static_cast<double>(head));
  if (rope.scaling != "none" && rope.mscale_all_dim != 0 && rope.factor > 1) {
    const double m = 0.1 * rope.mscale_all_dim * std::log(rope.factor) + 1;
    scale *= m * m;
  }
  return scale;
}

nn::LatentAttention::Config read_latent_attention(Fields& fields, const DecoderSizes& sizes,
                                                  bool interleaved) {
  nn::LatentAttention::Config made;
  made.n_heads = sizes.n_heads;
  made.kv_lora_rank = fields.integer("kv_lora_rank");
  made.qk_nope_head_dim = fields.integer("qk_nope_head_dim");
  made.qk_rope_head_dim = fields.integer("qk_rope_head_dim");
  made.v_head_dim = fields.integer("v_head_dim");
  fields.ignore({"qk_head_dim"});  // the sum of the first two
  const int64_t head = made.qk_nope_head_dim + made.qk_rope_head_dim;
  const bool bias = fields.flag("attention_bias");
  const auto q_rank = fields.maybe_integer("q_lora_rank");
  const InitRules init = init_rules(sizes.dim);
  const auto projection = [&](int64_t in, int64_t out, bool with_bias) {
    return linear(in, out, with_bias, init.qkv);
  };
  if (q_rank) {
    made.q_lora_rank = *q_rank;
    made.wq_a = projection(sizes.dim, *q_rank, bias);
    made.q_norm = rms_norm(*q_rank, kLatentEps);
    made.wq_b = projection(*q_rank, sizes.n_heads * head, false);
  } else {
    made.wq = projection(sizes.dim, sizes.n_heads * head, false);
  }
  made.wkv_a = projection(sizes.dim, made.kv_lora_rank + made.qk_rope_head_dim, bias);
  made.kv_norm = rms_norm(made.kv_lora_rank, kLatentEps);
  made.wkv_b = projection(made.kv_lora_rank,
                          sizes.n_heads * (made.qk_nope_head_dim + made.v_head_dim), false);
  const Rope rope = read_rope(fields, made.qk_rope_head_dim);
  made.rope = rotary(rope, interleaved);
  made.scale = score_scale(rope, head);
  made.wo = linear(sizes.n_heads * made.v_head_dim, sizes.dim, bias, nn::Init::zeros());
  return made;
}

// Llama's decoder with latent attention.
nn::Decoder::Config latent_decoder(Fields& fields, bool interleaved, bool mlp_bias) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.mlp_bias = mlp_bias;
  auto attention = read_latent_attention(fields, sizes, interleaved);
  auto model = llama_decoder(sizes, Rope());
  for (size_t i = 0; i < model.layers.size(); ++i) {
    attention.wo->init = depth_init(static_cast<int64_t>(i));
    model.layers[i]->attention = attention;
    auto* feed_forward = model.layers[i]->feed_forward.as<nn::FeedForward::Config>();
    RHEA_CHECK(feed_forward != nullptr, "the decoder of Llama has gated feed-forwards");
    feed_forward->activation = read_activation(fields);
  }
  return model;
}

nn::Decoder::Config deepseek_v2(Fields& fields) {
  Mixture mixture;
  mixture.shared_bias = fields.flag("mlp_bias");
  auto model = latent_decoder(fields, true, mixture.shared_bias);
  nn::Router::Config& router = mixture.router;
  router.num_experts = read_experts(fields);
  router.top_k = read_top_k(fields, router.num_experts);
  router.scale = fields.number("routed_scaling_factor");
  const std::string method = fields.text("topk_method");
  if (method == "group_limited_greedy") {
    router.group_score = "max";
    router.num_groups = fields.integer("n_group");
    router.top_groups = fields.integer("topk_group");
    if (router.num_experts % router.num_groups != 0 || router.top_groups > router.num_groups)
      throw fields.error(fmt::format("{} experts in n_group = {} groups, topk_group = {}",
                                     router.num_experts, router.num_groups, router.top_groups));
  } else if (method != "greedy") {
    throw fields.error(fmt::format(
        "topk_method '{}' is not supported; supported: greedy, group_limited_greedy", method));
  }
  fields.ignore({"n_group", "topk_group"});  // of greedy
  fields.only("norm_topk_prob", "false");
  fields.only("scoring_func", "\"softmax\"");
  mixture.activation = read_activation(fields);
  read_shared(fields, mixture);
  if (mixture.shared_dim == 0 && mixture.shared_bias)
    throw fields.error(
        "n_shared_experts = 0 and mlp_bias = true: shared experts without elements "
        "that add a bias are not supported");
  read_router_losses(fields);
  set_mixtures(model, mixture, read_dense_prefix(fields));
  return model;
}

// The mixture of DeepSeek-V3 behind any attention.
void read_v3_mixture(Fields& fields, nn::Decoder::Config& model) {
  Mixture mixture;
  mixture.router = read_sigmoid_router(fields, read_experts(fields));
  mixture.activation = read_activation(fields);
  read_shared(fields, mixture);
  if (fields.flag_or("mlp_bias", false))
    fields.warn("mlp_bias = true has no effect: feed-forwards of this model type have no biases");
  read_router_losses(fields);
  set_mixtures(model, mixture, read_dense_prefix(fields));
}

nn::Decoder::Config deepseek_v3(Fields& fields) {
  auto model = latent_decoder(fields, fields.flag("rope_interleave"), false);
  read_v3_mixture(fields, model);
  skip_mtp_layers(fields, model);
  return model;
}

nn::Decoder::Config glm4_moe(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = fields.flag("attention_bias");
  sizes.qk_norm = fields.flag("use_qk_norm");
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  set_activation(model, read_activation(fields));
  read_v3_mixture(fields, model);
  skip_mtp_layers(fields, model);
  return model;
}

nn::Decoder::Config dots1(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = fields.flag("attention_bias");
  sizes.qk_norm = true;
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  set_activation(model, read_activation(fields));
  const int64_t window = read_window(fields);
  const int64_t first = fields.integer_from("max_window_layers", 0);
  const auto sliding = read_sliding_layers(
      fields, sizes.n_layers, window, [&](int64_t layer) { return window > 0 && layer >= first; });
  if (window > 0) set_windows(model, window, sliding);
  read_v3_mixture(fields, model);
  return model;
}

}  // namespace

std::span<const Row> deepseek_rows() {
  static const std::vector<Spelling> kSpellings = {
      {"num_experts", {"n_routed_experts", "num_local_experts", "num_experts"}},
      {"num_mtp_layers", {"num_nextn_predict_layers", "num_mtp_layers"}}};
  static const std::array kRows = {
      Row{"deepseek_v2",
          {"DeepseekV2ForCausalLM"},
          R"({"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
 "num_attention_heads": 32, "vocab_size": 102400, "rms_norm_eps": 1e-6,
 "max_position_embeddings": 2048, "hidden_act": "silu", "tie_word_embeddings": false,
 "attention_bias": false, "first_k_dense_replace": 0, "kv_lora_rank": 512, "q_lora_rank": 1536,
 "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 64,
 "n_shared_experts": 2, "mlp_bias": false, "moe_intermediate_size": 1407, "routed_scaling_factor": 1.0,
 "topk_method": "greedy"})",
          deepseek_v2,
          kSpellings},
      Row{"deepseek_v3",
          {"DeepseekV3ForCausalLM"},
          R"({"hidden_size": 7168, "intermediate_size": 18432, "num_hidden_layers": 61,
 "num_attention_heads": 128, "vocab_size": 129280, "rms_norm_eps": 1e-6,
 "max_position_embeddings": 4096, "hidden_act": "silu", "tie_word_embeddings": false,
 "attention_bias": false, "first_k_dense_replace": 3, "kv_lora_rank": 512, "q_lora_rank": 1536,
 "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "rope_interleave": true,
 "n_routed_experts": 256, "num_experts_per_tok": 8, "n_shared_experts": 1,
 "moe_intermediate_size": 2048, "n_group": 8, "topk_group": 4, "norm_topk_prob": true,
 "routed_scaling_factor": 2.5, "num_nextn_predict_layers": 1})",
          deepseek_v3,
          kSpellings},
      Row{"glm4_moe",
          {"Glm4MoeForCausalLM"},
          R"({"hidden_size": 4096, "intermediate_size": 10944, "num_hidden_layers": 46,
 "num_attention_heads": 96, "num_key_value_heads": 8, "vocab_size": 151552, "rms_norm_eps": 1e-5,
 "max_position_embeddings": 131072, "hidden_act": "silu", "partial_rotary_factor": 0.5,
 "tie_word_embeddings": false, "attention_bias": false, "use_qk_norm": false,
 "first_k_dense_replace": 1, "n_routed_experts": 128, "num_experts_per_tok": 8,
 "n_shared_experts": 1, "moe_intermediate_size": 1408, "n_group": 1, "topk_group": 1,
 "norm_topk_prob": true, "routed_scaling_factor": 1.0, "num_nextn_predict_layers": 1})",
          glm4_moe,
          kSpellings},
      Row{"dots1",
          {"Dots1ForCausalLM"},
          R"({"hidden_size": 4608, "intermediate_size": 10944, "num_hidden_layers": 62,
 "num_attention_heads": 32, "vocab_size": 152064, "rms_norm_eps": 1e-6,
 "max_position_embeddings": 2048, "hidden_act": "silu", "tie_word_embeddings": false,
 "attention_bias": false, "sliding_window": 4096, "max_window_layers": 62,
 "first_k_dense_replace": 0, "moe_intermediate_size": 1408, "n_group": 1, "topk_group": 1,
 "norm_topk_prob": false, "routed_scaling_factor": 1.0})",
          dots1,
          kSpellings},
  };
  return kRows;
}

}  // namespace rhea::models::hf
