// GPT-2 and GPT-BigCode: learned positions, one joined projection.
#include <array>
#include <cmath>

#include "rhea/models/hf/gpt.h"
#include "rhea/models/hf/table.h"
#include "rhea/nn/transposed_linear.h"

namespace rhea::models::hf {
namespace {

constexpr nn::DecoderNames gpt2_names() {
  nn::DecoderNames names = nn::kHuggingFaceNames;
  names.prefix = "transformer";
  names.tok_embeddings = "wte";
  names.positions = "wpe";
  names.layers = "h";
  names.attention_norm = "ln_1";
  names.attention = "attn";
  names.wqkv = "c_attn";
  names.wo = "c_proj";
  names.ffn_norm = "ln_2";
  names.w1 = "c_fc";
  names.w2 = "c_proj";
  names.norm = "ln_f";
  return names;
}

nn::Decoder::Config gpt2_decoder(Fields& fields, GptSizes& sizes) {
  static constexpr nn::DecoderNames kNames = gpt2_names();
  sizes.qkv_bias = sizes.o_bias = sizes.mlp_bias = true;
  auto model = llama_decoder(sizes, Rope(), kNames);
  use_layer_norms(model, layer_norm(sizes.dim, sizes.norm_eps));
  set_plain_feed_forward(model, read_activation(fields, "activation_function"));
  use_learned_positions(model, sizes.num_positions);
  const bool scaled = fields.flag("scale_attn_weights");
  for_each_block(model, [&](auto&, nn::Attention::Config& attention, int64_t) {
    if (!scaled) attention.scale = 1;
  });
  return model;
}

// The same projection with its weight as GPT-2 stores it.
nn::TransposedLinear::Config transposed(const Slot<nn::Linear::Config>& linear) {
  nn::TransposedLinear::Config made;
  static_cast<nn::Linear::Config&>(made) = *linear;
  return made;
}

nn::Decoder::Config gpt2(Fields& fields) {
  GptSizes sizes = read_gpt_sizes(fields);
  auto model = gpt2_decoder(fields, sizes);
  join_qkv(model, false);
  const bool by_layer = fields.flag("scale_attn_by_inverse_layer_idx");
  fields.ignore({"reorder_and_upcast_attn"});  // scores are f32 here in any case
  for_each_block(model, [&](nn::TransformerBlock::Config& block, nn::Attention::Config& attention,
                            int64_t layer) {
    if (by_layer) {
      const double scale = attention.scale != 0
                               ? attention.scale
                               : 1 / std::sqrt(static_cast<double>(sizes.head_dim));
      attention.scale = scale / static_cast<double>(layer + 1);
    }
    auto& qkv = *attention.qkv_linear.as<nn::JoinedQKV::Config>();
    auto& feed_forward = *block.feed_forward.as<nn::PlainFeedForward::Config>();
    qkv.wqkv = transposed(qkv.wqkv);
    attention.wo = transposed(attention.wo);
    feed_forward.w1 = transposed(feed_forward.w1);
    feed_forward.w2 = transposed(feed_forward.w2);
  });
  return model;
}

nn::Decoder::Config gpt_bigcode(Fields& fields) {
  GptSizes sizes = read_gpt_sizes(fields);
  const bool multi_query = fields.flag("multi_query");
  if (multi_query) sizes.n_kv_heads = 1;
  auto model = gpt2_decoder(fields, sizes);
  join_qkv(model, !multi_query);
  // How the scores are rounded, and settings of a server.
  fields.ignore({"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32",
                 "num_key_value_heads", "inference_runner", "validate_runner_input",
                 "pre_allocate_kv_cache", "pad_key_length", "max_sequence_length",
                 "max_batch_size"});
  return model;
}

}  // namespace

std::span<const Row> gpt2_rows() {
  static const std::array kRows = {
      Row{"gpt2",
          {"GPT2LMHeadModel"},
          R"({"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12,
 "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "scale_attn_weights": true,
 "scale_attn_by_inverse_layer_idx": false, "tie_word_embeddings": true})",
          gpt2,
          gpt_spellings(),
          false},
      Row{"gpt_bigcode",
          {"GPTBigCodeForCausalLM"},
          R"({"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12,
 "activation_function": "gelu_pytorch_tanh", "layer_norm_epsilon": 1e-5,
 "scale_attn_weights": true, "multi_query": true, "tie_word_embeddings": true})",
          gpt_bigcode,
          gpt_spellings(),
          false},
  };
  return kRows;
}

}  // namespace rhea::models::hf
