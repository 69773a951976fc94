// Names in published Llama files. Only q and k differ in the order of their rows.
#include <array>

#include "rhea/models/llama3/llama3.h"

namespace rhea::models::llama3 {

std::span<const KeyRule> key_rules() {
  static constexpr std::array kRules = {
      KeyRule{"tok_embeddings.weight", "model.embed_tokens.weight"},
      KeyRule{"layers.{}.attention_norm.weight", "model.layers.{}.input_layernorm.weight"},
      KeyRule{"layers.{}.attention.qkv_linear.wq.weight", "model.layers.{}.self_attn.q_proj.weight",
              KeyForm::permuted},
      KeyRule{"layers.{}.attention.qkv_linear.wk.weight", "model.layers.{}.self_attn.k_proj.weight",
              KeyForm::permuted},
      KeyRule{"layers.{}.attention.qkv_linear.wv.weight",
              "model.layers.{}.self_attn.v_proj.weight"},
      KeyRule{"layers.{}.attention.qkv_linear.wq.bias", "model.layers.{}.self_attn.q_proj.bias",
              KeyForm::permuted},
      KeyRule{"layers.{}.attention.qkv_linear.wk.bias", "model.layers.{}.self_attn.k_proj.bias",
              KeyForm::permuted},
      KeyRule{"layers.{}.attention.qkv_linear.wv.bias", "model.layers.{}.self_attn.v_proj.bias"},
      KeyRule{"layers.{}.attention.wo.weight", "model.layers.{}.self_attn.o_proj.weight"},
      KeyRule{"layers.{}.attention.wo.bias", "model.layers.{}.self_attn.o_proj.bias"},
      KeyRule{"layers.{}.ffn_norm.weight", "model.layers.{}.post_attention_layernorm.weight"},
      KeyRule{"layers.{}.feed_forward.w1.weight", "model.layers.{}.mlp.gate_proj.weight"},
      KeyRule{"layers.{}.feed_forward.w2.weight", "model.layers.{}.mlp.down_proj.weight"},
      KeyRule{"layers.{}.feed_forward.w3.weight", "model.layers.{}.mlp.up_proj.weight"},
      KeyRule{"layers.{}.feed_forward.w1.bias", "model.layers.{}.mlp.gate_proj.bias"},
      KeyRule{"layers.{}.feed_forward.w2.bias", "model.layers.{}.mlp.down_proj.bias"},
      KeyRule{"layers.{}.feed_forward.w3.bias", "model.layers.{}.mlp.up_proj.bias"},
      KeyRule{"norm.weight", "model.norm.weight"},
      KeyRule{"lm_head.weight", "lm_head.weight"},
  };
  return kRules;
}

}  // namespace rhea::models::llama3
