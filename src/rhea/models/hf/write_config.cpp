// config.json of an exported native model, in the spelling of Transformers 5.
#include <nlohmann/json.hpp>

#include "rhea/models/decoder_sizes.h"
#include "rhea/models/hf/config_json.h"

namespace rhea::models::hf {
namespace {

nlohmann::ordered_json rope_json(const nn::RopeFields& rope) {
  nlohmann::ordered_json made = {{"rope_theta", rope.theta},
                                 {"rope_type", rope.scaling == "none" ? "default" : rope.scaling}};
  if (rope.scaling == "none") return made;
  made["factor"] = rope.factor;
  if (rope.scaling != "linear")
    made["original_max_position_embeddings"] = rope.original_max_position_embeddings;
  if (rope.scaling == "llama3") {
    made["low_freq_factor"] = rope.low_freq_factor;
    made["high_freq_factor"] = rope.high_freq_factor;
  } else if (rope.scaling == "yarn") {
    made["beta_fast"] = rope.beta_fast;
    made["beta_slow"] = rope.beta_slow;
    made["truncate"] = rope.truncate;
    if (rope.mscale != 0) made["mscale"] = rope.mscale;
    if (rope.mscale_all_dim != 0) made["mscale_all_dim"] = rope.mscale_all_dim;
  } else if (rope.scaling == "longrope") {
    made["short_factor"] = rope.short_factor;
    made["long_factor"] = rope.long_factor;
  }
  if (rope.attention_factor != 0) made["attention_factor"] = rope.attention_factor;
  return made;
}

}  // namespace

std::string write_config(const nn::Decoder::Config& model) {
  const DecoderSizes sizes = sizes_of(model);
  const nn::RopeFields& rope = rope_of(model);
  const bool qwen3 = sizes.qk_norm, sparse = sizes.experts.num_experts > 0;
  nlohmann::ordered_json made = {
      {"architectures",
       {sparse  ? "Qwen3MoeForCausalLM"
        : qwen3 ? "Qwen3ForCausalLM"
                : "LlamaForCausalLM"}},
      {"model_type", sparse  ? "qwen3_moe"
                     : qwen3 ? "qwen3"
                             : "llama"},
      {"attention_bias", sizes.qkv_bias},
      {"attention_dropout", 0.0},
      {"head_dim", sizes.head_dim},
      {"hidden_act", "silu"},
      {"hidden_size", sizes.dim},
      {"intermediate_size", sizes.hidden_dim},
      {"max_position_embeddings", rope.max_position_embeddings},
      {"num_attention_heads", sizes.n_heads},
      {"num_hidden_layers", sizes.n_layers},
      {"num_key_value_heads", sizes.n_kv_heads},
      {"rms_norm_eps", sizes.norm_eps},
      {"rope_parameters", rope_json(rope)},
      {"tie_word_embeddings", sizes.tied},
      {"dtype", "float32"},
      {"use_cache", true},
      {"vocab_size", sizes.vocab_size},
  };
  if (!qwen3) made["mlp_bias"] = sizes.mlp_bias;
  if (sparse) {
    made["decoder_sparse_step"] = 1;
    made["mlp_only_layers"] = nlohmann::ordered_json::array();
    made["moe_intermediate_size"] = sizes.hidden_dim;
    made["norm_topk_prob"] = sizes.experts.normalize;
    made["num_experts"] = sizes.experts.num_experts;
    made["num_experts_per_tok"] = sizes.experts.top_k;
  }
  return made.dump(2) + "\n";
}

}  // namespace rhea::models::hf
