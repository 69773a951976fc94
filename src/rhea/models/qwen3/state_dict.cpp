// Names in published Qwen3 files; no row is moved.
#include <array>

#include "rhea/models/qwen3/qwen3.h"

namespace rhea::models::qwen3 {

std::span<const KeyRule> key_rules() {
  static constexpr std::array kRules = {
      KeyRule{"tok_embeddings.weight", "model.embed_tokens.weight"},
      KeyRule{"layers.{}.attention_norm.weight", "model.layers.{}.input_layernorm.weight"},
      KeyRule{"layers.{}.attention.qkv_linear.wq.weight",
              "model.layers.{}.self_attn.q_proj.weight"},
      KeyRule{"layers.{}.attention.qkv_linear.wk.weight",
              "model.layers.{}.self_attn.k_proj.weight"},
      KeyRule{"layers.{}.attention.qkv_linear.wv.weight",
              "model.layers.{}.self_attn.v_proj.weight"},
      KeyRule{"layers.{}.attention.qkv_linear.wq.bias", "model.layers.{}.self_attn.q_proj.bias"},
      KeyRule{"layers.{}.attention.qkv_linear.wk.bias", "model.layers.{}.self_attn.k_proj.bias"},
      KeyRule{"layers.{}.attention.qkv_linear.wv.bias", "model.layers.{}.self_attn.v_proj.bias"},
      KeyRule{"layers.{}.attention.wo.bias", "model.layers.{}.self_attn.o_proj.bias"},
      KeyRule{"layers.{}.attention.wo.weight", "model.layers.{}.self_attn.o_proj.weight"},
      KeyRule{"layers.{}.attention.q_norm.weight", "model.layers.{}.self_attn.q_norm.weight"},
      KeyRule{"layers.{}.attention.k_norm.weight", "model.layers.{}.self_attn.k_norm.weight"},
      KeyRule{"layers.{}.ffn_norm.weight", "model.layers.{}.post_attention_layernorm.weight"},
      KeyRule{"layers.{}.feed_forward.w1.weight", "model.layers.{}.mlp.gate_proj.weight"},
      KeyRule{"layers.{}.feed_forward.w2.weight", "model.layers.{}.mlp.down_proj.weight"},
      KeyRule{"layers.{}.feed_forward.w3.weight", "model.layers.{}.mlp.up_proj.weight"},
      KeyRule{"layers.{}.moe.router.gate.weight", "model.layers.{}.mlp.gate.weight"},
      KeyRule{"layers.{}.moe.expert_bias_E", "model.layers.{}.mlp.gate.e_score_correction_bias",
              KeyForm::absent},
      KeyRule{"layers.{}.moe.routed_experts.inner_experts.w1_EFD",
              "model.layers.{}.mlp.experts.[].gate_proj.weight", KeyForm::sliced},
      KeyRule{"layers.{}.moe.routed_experts.inner_experts.w2_EDF",
              "model.layers.{}.mlp.experts.[].down_proj.weight", KeyForm::sliced},
      KeyRule{"layers.{}.moe.routed_experts.inner_experts.w3_EFD",
              "model.layers.{}.mlp.experts.[].up_proj.weight", KeyForm::sliced},
      KeyRule{"norm.weight", "model.norm.weight"},
      KeyRule{"lm_head.weight", "lm_head.weight"},
  };
  return kRules;
}

}  // namespace rhea::models::qwen3
