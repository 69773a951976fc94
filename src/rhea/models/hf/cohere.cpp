// Command R: attention and feed-forward side by side behind one LayerNorm.
#include <array>

#include "rhea/models/hf/build.h"
#include "rhea/models/hf/table.h"

namespace rhea::models::hf {
namespace {

nn::Decoder::Config cohere_decoder(Fields& fields, DecoderSizes& sizes) {
  sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = fields.flag("attention_bias");
  sizes.interleaved_rope = true;
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  set_activation(model, read_activation(fields));
  model.logit_scale = fields.number("logit_scale");
  const auto norm = layer_norm(sizes.dim, sizes.norm_eps, true, false);
  model.norm = norm;
  for_each_block(model, [&](nn::TransformerBlock::Config& block, auto&, int64_t) {
    block.attention_norm = norm;
    block.ffn_norm = {};
    block.parallel = true;
  });
  return model;
}

nn::Decoder::Config cohere(Fields& fields) {
  DecoderSizes sizes;
  auto model = cohere_decoder(fields, sizes);
  if (!fields.flag("use_qk_norm")) return model;
  nn::HeadLayerNorm::Config norm;
  norm.dim = sizes.head_dim;
  norm.eps = sizes.norm_eps;
  for_each_block(model, [&](auto&, nn::Attention::Config& attention, int64_t) {
    attention.q_norm = attention.k_norm = norm;
  });
  return model;
}

// Layers without a window have no rotary embedding.
nn::Decoder::Config cohere2(Fields& fields) {
  DecoderSizes sizes;
  auto model = cohere_decoder(fields, sizes);
  // What published files say of the only form there is.
  fields.only({{"use_qk_norm", "false"},
               {"use_parallel_block", "true"},
               {"use_gated_activation", "true"},
               {"use_embedding_sharing", "true"},
               {"rotary_pct", "1"},
               {"position_embedding_type", "\"rope_gptj\""},
               {"order_of_interleaved_layers", "\"local_attn_first\""}});
  fields.ignore({"use_parallel_embedding"});
  fields.check_number("sliding_window_pattern");
  const int64_t window = read_window(fields);
  const auto sliding = read_sliding_layers(fields, sizes.n_layers, window, [&](int64_t layer) {
    return (layer + 1) % fields.integer("sliding_window_pattern") != 0;
  });
  set_windows(model, window, sliding);
  for_each_block(model, [&](auto&, nn::Attention::Config& attention, int64_t layer) {
    if (!sliding[static_cast<size_t>(layer)]) attention.rope = {};
  });
  return model;
}

}  // namespace

std::span<const Row> cohere_rows() {
  static const std::array kRows = {
      Row{"cohere",
          {"CohereForCausalLM"},
          R"({"pad_token_id": 0, "hidden_size": 8192, "intermediate_size": 22528,
 "num_hidden_layers": 40, "num_attention_heads": 64, "vocab_size": 256000, "layer_norm_eps": 1e-5,
 "max_position_embeddings": 8192, "hidden_act": "silu", "rope_theta": 5e5, "logit_scale": 0.0625,
 "tie_word_embeddings": true, "attention_bias": false, "use_qk_norm": false})",
          cohere,
          {{"rms_norm_eps", {"layer_norm_eps"}}}},
      Row{"cohere2",
          {"Cohere2ForCausalLM"},
          R"({"pad_token_id": 0, "hidden_size": 8192, "intermediate_size": 22528,
 "num_hidden_layers": 40, "num_attention_heads": 64, "vocab_size": 256000, "layer_norm_eps": 1e-5,
 "max_position_embeddings": 8192, "hidden_act": "silu", "logit_scale": 0.0625,
 "tie_word_embeddings": true, "attention_bias": false, "sliding_window": 4096,
 "sliding_window_pattern": 4})",
          cohere2,
          {{"rms_norm_eps", {"layer_norm_eps"}}}},
  };
  return kRows;
}

}  // namespace rhea::models::hf
