// Gemma: norms multiply by 1 + weight, embeddings by sqrt(D).
#include <array>
#include <cmath>

#include "rhea/models/hf/build.h"
#include "rhea/models/hf/table.h"

namespace rhea::models::hf {
namespace {

// Norms on the branches' inputs and outputs.
constexpr nn::DecoderNames sandwich_names() {
  nn::DecoderNames names = nn::kHuggingFaceNames;
  names.ffn_norm = "pre_feedforward_layernorm";
  return names;
}
constexpr nn::DecoderNames kSandwichNames = sandwich_names();

nn::Decoder::Config gemma_decoder(Fields& fields, const DecoderSizes& sizes, const Rope& rope,
                                  const nn::DecoderNames& names) {
  auto model = llama_decoder(sizes, rope, names);
  const auto norm = [&](int64_t dim) { return rms_norm(dim, sizes.norm_eps, 1); };
  fields.only("use_bidirectional_attention", "false");
  model.embedding_multiplier = std::sqrt(static_cast<double>(sizes.dim));
  model.round_embedding_multiplier = true;
  model.norm = norm(sizes.dim);
  for_each_block(
      model, [&](nn::TransformerBlock::Config& block, nn::Attention::Config& attention, int64_t) {
        block.attention_norm = norm(sizes.dim);
        block.ffn_norm = norm(sizes.dim);
        if (sizes.qk_norm) attention.q_norm = attention.k_norm = norm(sizes.head_dim);
        if (&names != &kSandwichNames) return;
        block.post_attention_norm = norm(sizes.dim);
        block.post_ffn_norm = norm(sizes.dim);
      });
  return model;
}

DecoderSizes gemma_sizes(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = fields.flag("attention_bias");
  return sizes;
}

nn::Decoder::Config gemma(Fields& fields) {
  const DecoderSizes sizes = gemma_sizes(fields);
  auto model =
      gemma_decoder(fields, sizes, read_rope(fields, sizes.head_dim), nn::kHuggingFaceNames);
  // The first files say gelu and mean its tanh form.
  const std::string activation = read_activation(fields);
  set_activation(model, activation == "gelu" ? "gelu_tanh" : activation);
  fields.ignore({"hidden_activation"});  // older files repeat hidden_act
  return model;
}

// What Gemma 2 and 3 share beyond the norms.
void read_common(Fields& fields, nn::Decoder::Config& model) {
  set_activation(model, read_activation(fields, "hidden_activation"));
  fields.ignore({"hidden_act"});  // files of Gemma 2 repeat it
  const double scale = 1 / std::sqrt(read_positive(fields, "query_pre_attn_scalar"));
  model.logit_softcap = maybe_positive(fields, "final_logit_softcapping");
  for_each_block(
      model, [&](auto&, nn::Attention::Config& attention, int64_t) { attention.scale = scale; });
}

nn::Decoder::Config gemma2(Fields& fields) {
  const DecoderSizes sizes = gemma_sizes(fields);
  auto model = gemma_decoder(fields, sizes, read_rope(fields, sizes.head_dim), kSandwichNames);
  read_common(fields, model);
  const double score_cap = maybe_positive(fields, "attn_logit_softcapping");
  for_each_block(model, [&](auto&, nn::Attention::Config& attention, int64_t) {
    attention.softcap = score_cap;
  });
  const int64_t window = read_window(fields);
  set_windows(model, window, read_sliding_layers(fields, sizes.n_layers, window, [](int64_t layer) {
                return layer % 2 == 0;
              }));
  return model;
}

nn::Decoder::Config gemma3_text(Fields& fields) {
  DecoderSizes sizes = gemma_sizes(fields);
  sizes.qk_norm = true;
  const LayerRopes ropes = read_layer_ropes(fields, sizes.head_dim);
  auto model = gemma_decoder(fields, sizes, ropes.full, kSandwichNames);
  read_common(fields, model);
  fields.only("attn_logit_softcapping", "null");  // which Transformers reads and does not apply
  fields.check_number("sliding_window_pattern");
  fields.ignore({"_sliding_window_pattern"});
  const int64_t window = read_window(fields);
  const auto sliding = read_sliding_layers(fields, sizes.n_layers, window, [&](int64_t layer) {
    return (layer + 1) % fields.integer("sliding_window_pattern") != 0;
  });
  set_windows(model, window, sliding);
  set_ropes(model, ropes, sliding);
  return model;
}

}  // namespace

std::span<const Row> gemma_rows() {
  static const std::array kRows = {
      Row{"gemma",
          {"GemmaForCausalLM"},
          R"({"pad_token_id": 0, "hidden_size": 3072, "intermediate_size": 24576,
 "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 256,
 "vocab_size": 256000, "rms_norm_eps": 1e-6, "max_position_embeddings": 8192,
 "hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": true, "attention_bias": false})",
          gemma},
      Row{"gemma2",
          {"Gemma2ForCausalLM"},
          R"({"pad_token_id": 0, "hidden_size": 2304, "intermediate_size": 9216,
 "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
 "vocab_size": 256000, "rms_norm_eps": 1e-6, "max_position_embeddings": 8192,
 "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": true, "attention_bias": false,
 "query_pre_attn_scalar": 256, "sliding_window": 4096, "final_logit_softcapping": 30,
 "attn_logit_softcapping": 50})",
          gemma2},
      Row{"gemma3_text",
          {"Gemma3ForCausalLM"},
          R"({"pad_token_id": 0, "hidden_size": 2304, "intermediate_size": 9216,
 "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
 "vocab_size": 262208, "rms_norm_eps": 1e-6, "max_position_embeddings": 131072,
 "hidden_activation": "gelu_pytorch_tanh", "rope_theta": 1e6, "rope_local_base_freq": 1e4,
 "tie_word_embeddings": true, "attention_bias": false, "query_pre_attn_scalar": 256,
 "sliding_window": 4096, "sliding_window_pattern": 6})",
          gemma3_text},
  };
  return kRows;
}

}  // namespace rhea::models::hf
