// GPT-NeoX (Pythia) and Persimmon: query, key and value of each head side by side in one matrix.
#include <array>

#include "rhea/models/hf/gpt.h"
#include "rhea/models/hf/table.h"

namespace rhea::models::hf {
namespace {

constexpr nn::DecoderNames persimmon_names() {
  nn::DecoderNames names = nn::kHuggingFaceNames;
  names.wqkv = "query_key_value";
  names.q_norm = "q_layernorm";
  names.k_norm = "k_layernorm";
  names.wo = "dense";
  names.w1 = "dense_h_to_4h";
  names.w2 = "dense_4h_to_h";
  names.norm = "final_layernorm";
  return names;
}

constexpr nn::DecoderNames gpt_neox_names() {
  nn::DecoderNames names = persimmon_names();
  names.prefix = "gpt_neox";
  names.tok_embeddings = "embed_in";
  names.attention = "attention";
  names.norm = "final_layer_norm";
  names.lm_head = "embed_out";
  return names;
}

nn::Decoder::Config decoder(Fields& fields, const DecoderSizes& sizes, const Rope& rope,
                            const nn::DecoderNames& names) {
  if (sizes.n_kv_heads != sizes.n_heads)
    throw fields.error("num_key_value_heads is not supported: each query head has its own kv head");
  auto model = llama_decoder(sizes, rope, names);
  use_layer_norms(model, layer_norm(sizes.dim, sizes.norm_eps));
  set_plain_feed_forward(model, read_activation(fields));
  join_qkv(model, true);
  return model;
}

nn::Decoder::Config gpt_neox(Fields& fields) {
  static constexpr nn::DecoderNames kNames = gpt_neox_names();
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = fields.flag("attention_bias");
  sizes.mlp_bias = true;
  fields.dropout({"hidden_dropout"});
  fields.ignore({"classifier_dropout"});
  auto model = decoder(
      fields, sizes,
      read_rope(fields, sizes.head_dim, {.theta = "rotary_emb_base", .partial = "rotary_pct"}),
      kNames);
  const bool parallel = fields.flag("use_parallel_residual");
  for_each_block(model, [&](nn::TransformerBlock::Config& block, auto&, int64_t) {
    block.parallel = parallel;
  });
  return model;
}

nn::Decoder::Config persimmon(Fields& fields) {
  static constexpr nn::DecoderNames kNames = persimmon_names();
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = sizes.mlp_bias = true;
  fields.dropout({"hidden_dropout"});
  auto model = decoder(fields, sizes, read_rope(fields, sizes.head_dim), kNames);
  if (!fields.flag("qk_layernorm")) return model;
  for_each_block(model, [&](auto&, nn::Attention::Config& attention, int64_t) {
    attention.q_norm = attention.k_norm = layer_norm(sizes.head_dim, sizes.norm_eps);
  });
  return model;
}

}  // namespace

std::span<const Row> gpt_neox_rows() {
  static const std::array kRows = {
      Row{"gpt_neox",
          {"GPTNeoXForCausalLM"},
          R"({"vocab_size": 50432, "hidden_size": 6144, "num_hidden_layers": 44,
 "num_attention_heads": 64, "intermediate_size": 24576, "hidden_act": "gelu",
 "max_position_embeddings": 2048, "layer_norm_eps": 1e-5, "rotary_pct": 0.25,
 "use_parallel_residual": true, "attention_bias": true, "tie_word_embeddings": false})",
          gpt_neox,
          {{"rms_norm_eps", {"layer_norm_eps"}}, {"rope_theta", {"rotary_emb_base"}}},
          false},
      Row{"persimmon",
          {"PersimmonForCausalLM"},
          R"({"vocab_size": 262144, "hidden_size": 4096, "num_hidden_layers": 36,
 "num_attention_heads": 64, "intermediate_size": 16384, "hidden_act": "relu2",
 "max_position_embeddings": 16384, "layer_norm_eps": 1e-5, "partial_rotary_factor": 0.5,
 "qk_layernorm": true, "tie_word_embeddings": false})",
          persimmon,
          {{"rms_norm_eps", {"layer_norm_eps"}}}},
  };
  return kRows;
}

}  // namespace rhea::models::hf
