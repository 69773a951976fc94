// GLM: adjacent pairs on half of each head, gate and up projections in one matrix.
#include <array>

#include "rhea/models/hf/build.h"
#include "rhea/models/hf/table.h"

namespace rhea::models::hf {
namespace {

nn::Decoder::Config glm_decoder(Fields& fields, const nn::DecoderNames& names) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = fields.flag("attention_bias");
  sizes.interleaved_rope = true;
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim), names);
  set_activation(model, read_activation(fields));
  join_gate_up(model);
  return model;
}

nn::Decoder::Config glm(Fields& fields) { return glm_decoder(fields, nn::kHuggingFaceNames); }

constexpr nn::DecoderNames glm4_names() {
  nn::DecoderNames names = nn::kHuggingFaceNames;
  names.post_attention_norm = "post_self_attn_layernorm";
  names.post_ffn_norm = "post_mlp_layernorm";
  return names;
}

nn::Decoder::Config glm4(Fields& fields) {
  static constexpr nn::DecoderNames kNames = glm4_names();
  auto model = glm_decoder(fields, kNames);
  for_each_block(model, [](nn::TransformerBlock::Config& block, auto&, int64_t) {
    block.post_attention_norm = block.attention_norm;
    block.post_ffn_norm = block.ffn_norm;
  });
  return model;
}

constexpr std::string_view kDefaults =
    R"({"pad_token_id": 151329, "hidden_size": 4096, "intermediate_size": 13696,
 "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
 "vocab_size": 151552, "rms_norm_eps": 1.5625e-7, "max_position_embeddings": 131072,
 "hidden_act": "silu", "partial_rotary_factor": 0.5, "tie_word_embeddings": false,
 "attention_bias": true})";

}  // namespace

std::span<const Row> glm_rows() {
  static const std::array kRows = {
      Row{"glm", {"GlmForCausalLM"}, kDefaults, glm},
      Row{"glm4", {"Glm4ForCausalLM"}, kDefaults, glm4},
  };
  return kRows;
}

}  // namespace rhea::models::hf
