// StableLM, StarCoder 2 and Nemotron: Llama's form with LayerNorm.
//
// T tokens, N heads, H head dim
#include <array>

#include "rhea/models/hf/gpt.h"
#include "rhea/models/hf/table.h"
#include "rhea/ops/ops.h"

namespace rhea::models::hf {

struct NormOfEachHead {
  // LayerNorm of each head of x_TNH with a weight of its own, stored as norms.<head>.weight [H]
  struct Config : nn::Norm::Config {
    nn::Value forward(nn::Trace& trace, nn::Value x_TNH) const override {
      std::vector<nn::Value> rows;
      const ir::Scope scope(trace.graph(), "norms");
      for (int64_t head = 0; head < x_TNH.dim(1); ++head)
        rows.push_back(ops::reshape(
            trace.parameter(fmt::format("{}.weight", head), {dim}, nn::Init::ones()), {1, dim}));
      const nn::Value w_NH = ops::concatenate(rows, 0);
      const nn::Value normed_TNH = ops::layer_norm(x_TNH, std::nullopt, std::nullopt, eps);
      return normed_TNH * ops::broadcast_in_dim(w_NH, x_TNH.shape(), {1, 2});
    }
  };
};

namespace {

constexpr nn::DecoderNames stablelm_names() {
  nn::DecoderNames names = nn::kHuggingFaceNames;
  names.q_norm = "q_layernorm";
  names.k_norm = "k_layernorm";
  return names;
}

nn::Decoder::Config stablelm(Fields& fields) {
  static constexpr nn::DecoderNames kNames = stablelm_names();
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = fields.flag("use_qkv_bias");
  fields.dropout({"hidden_dropout"});
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim), kNames);
  set_activation(model, read_activation(fields));
  use_layer_norms(model, layer_norm(sizes.dim, sizes.norm_eps));
  if (fields.flag("use_parallel_residual")) use_one_parallel_norm(model);
  if (!fields.flag("qk_layernorm")) return model;
  NormOfEachHead::Config norm;
  norm.dim = sizes.head_dim;
  norm.eps = sizes.norm_eps;
  for_each_block(model, [&](auto&, nn::Attention::Config& attention, int64_t) {
    attention.q_norm = attention.k_norm = norm;
  });
  return model;
}

constexpr nn::DecoderNames starcoder2_names() {
  nn::DecoderNames names = nn::kHuggingFaceNames;
  names.w1 = "c_fc";
  names.w2 = "c_proj";
  return names;
}

nn::Decoder::Config starcoder2(Fields& fields) {
  static constexpr nn::DecoderNames kNames = starcoder2_names();
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = sizes.mlp_bias = fields.flag("use_bias");
  fields.dropout({"residual_dropout", "embedding_dropout"});
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim), kNames);
  use_layer_norms(model, layer_norm(sizes.dim, sizes.norm_eps));
  set_plain_feed_forward(model, read_activation(fields));
  set_windows(model, read_window(fields), std::vector<bool>(model.layers.size(), true));
  fields.only("mlp_type", "\"default\"");
  fields.only("norm_type", "\"layer_norm\"");
  fields.only("scale_attn_weights", "true");
  fields.only("layer_types", "null");
  // hidden_act counts; the others say how scores are rounded.
  fields.ignore(
      {"activation_function", "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32"});
  return model;
}

constexpr nn::DecoderNames nemotron_names() {
  nn::DecoderNames names = nn::kHuggingFaceNames;
  names.w1 = "up_proj";
  names.w2 = "down_proj";
  return names;
}

nn::Decoder::Config nemotron(Fields& fields) {
  static constexpr nn::DecoderNames kNames = nemotron_names();
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = fields.flag("attention_bias");
  sizes.mlp_bias = fields.flag("mlp_bias");
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim), kNames);
  use_layer_norms(model, layer_norm(sizes.dim, sizes.norm_eps, true, true, 1));
  set_plain_feed_forward(model, read_activation(fields));
  return model;
}

}  // namespace

std::span<const Row> stablelm_rows() {
  static const std::array kRows = {
      Row{"stablelm",
          {"StableLmForCausalLM"},
          R"({"vocab_size": 50304, "intermediate_size": 6912, "hidden_size": 2560,
 "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
 "hidden_act": "silu", "max_position_embeddings": 4096, "layer_norm_eps": 1e-5,
 "partial_rotary_factor": 0.25, "use_qkv_bias": false, "qk_layernorm": false,
 "use_parallel_residual": false, "tie_word_embeddings": false})",
          stablelm,
          {{"rms_norm_eps", {"layer_norm_eps"}}}},
      Row{"starcoder2",
          {"Starcoder2ForCausalLM"},
          R"({"vocab_size": 49152, "hidden_size": 3072, "intermediate_size": 12288,
 "num_hidden_layers": 30, "num_attention_heads": 24, "num_key_value_heads": 2,
 "hidden_act": "gelu_pytorch_tanh", "max_position_embeddings": 4096, "norm_epsilon": 1e-5,
 "use_bias": true, "tie_word_embeddings": true})",
          starcoder2,
          {{"rms_norm_eps", {"norm_epsilon"}}}},
      Row{"nemotron",
          {"NemotronForCausalLM"},
          R"({"vocab_size": 256000, "hidden_size": 6144, "intermediate_size": 24576,
 "num_hidden_layers": 32, "num_attention_heads": 48, "hidden_act": "relu2",
 "max_position_embeddings": 4096, "norm_eps": 1e-5, "partial_rotary_factor": 0.5,
 "attention_bias": false, "mlp_bias": false, "tie_word_embeddings": false})",
          nemotron,
          {{"rms_norm_eps", {"norm_eps"}}}},
  };
  return kRows;
}

}  // namespace rhea::models::hf
