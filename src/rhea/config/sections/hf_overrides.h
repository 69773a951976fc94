// Section `hf_overrides`: numbers of this run that replace those of config.json; None keeps the
// file's.
#pragma once
#include "rhea/config/visitor.h"

namespace rhea {

// Numbers that replace those of config.json.
struct HfOverridesConfig : Config {
  std::optional<int64_t> dim;
  std::optional<int64_t> n_layers;
  std::optional<int64_t> n_heads;
  std::optional<int64_t> n_kv_heads;
  std::optional<int64_t> vocab_size;
  std::optional<int64_t> intermediate_size;
  std::optional<double> norm_eps;
  std::optional<double> rope_theta;
  std::optional<int64_t> num_experts;
  std::optional<int64_t> num_experts_per_tok;
  std::optional<int64_t> moe_intermediate_size;
  std::optional<int64_t> decoder_sparse_step;
  std::optional<bool> norm_topk_prob;
  std::optional<std::string> attn_implementation;
  std::optional<std::string> attn_mask_type;

  void fields(Visitor& v) override {
    v("dim", dim, "hidden_size", at_least(1));
    v("n_layers", n_layers, "num_hidden_layers; lists with an entry per layer are cut",
      at_least(1));
    v("n_heads", n_heads, "num_attention_heads; head_dim stays where the file has it", at_least(1));
    v("n_kv_heads", n_kv_heads, "num_key_value_heads", at_least(1));
    v("vocab_size", vocab_size, "rows of the embedding and the head", at_least(1));
    v("intermediate_size", intermediate_size, "width of the feed-forward", at_least(1));
    v("norm_eps", norm_eps, "rms_norm_eps or layer_norm_eps", greater_than(0));
    v("rope_theta", rope_theta, "base of the rotary frequencies; the scaling stays",
      greater_than(0));
    v("num_experts", num_experts, "experts of a layer", at_least(1));
    v("num_experts_per_tok", num_experts_per_tok, "experts of a token", at_least(1));
    v("moe_intermediate_size", moe_intermediate_size, "width of one expert", at_least(1));
    v("decoder_sparse_step", decoder_sparse_step, "every which layer has experts", at_least(1));
    v("norm_topk_prob", norm_topk_prob, "the weights of a token's experts sum to 1");
    v("attn_implementation", attn_implementation,
      "whose attention of Transformers the model is that of, where they differ: Falcon's biases by "
      "distance count twice in eager and once in sdpa; None: the file's, else eager",
      one_of{"eager", "sdpa"});
    v("attn_mask_type", attn_mask_type,
      "block_causal: a token sees its own document only; causal: all before it in the row; None: "
      "block_causal",
      one_of{"block_causal", "causal"});
  }
};

}  // namespace rhea
