// Phi: branches side by side behind one LayerNorm, biases everywhere.
#include <array>

#include "rhea/models/hf/gpt.h"
#include "rhea/models/hf/table.h"

namespace rhea::models::hf {
namespace {

constexpr nn::DecoderNames phi_names() {
  nn::DecoderNames names = nn::kHuggingFaceNames;
  names.q_norm = "q_layernorm";
  names.k_norm = "k_layernorm";
  names.wo = "dense";
  names.w1 = "fc1";
  names.w2 = "fc2";
  names.norm = "final_layernorm";
  return names;
}

nn::Decoder::Config decoder(DecoderSizes sizes, const Rope& rope, const std::string& activation) {
  static constexpr nn::DecoderNames kNames = phi_names();
  sizes.qkv_bias = sizes.o_bias = sizes.mlp_bias = true;
  auto model = llama_decoder(sizes, rope, kNames);
  use_layer_norms(model, layer_norm(sizes.dim, sizes.norm_eps));
  set_plain_feed_forward(model, activation);
  use_one_parallel_norm(model);
  model.lm_head->bias = true;
  return model;
}

nn::Decoder::Config phi(Fields& fields) {
  const DecoderSizes sizes = read_sizes(fields);
  fields.dropout({"resid_pdrop", "embd_pdrop"});
  auto model = decoder(sizes, read_rope(fields, sizes.head_dim), read_activation(fields));
  if (!fields.flag("qk_layernorm")) return model;
  for_each_block(model, [&](auto&, nn::Attention::Config& attention, int64_t) {
    attention.q_norm = attention.k_norm = layer_norm(sizes.head_dim, sizes.norm_eps);
  });
  return model;
}

// Files from before Phi was part of Transformers: the fields of GPT-2.
nn::Decoder::Config phi_msft(Fields& fields) {
  GptSizes sizes = read_gpt_sizes(fields);
  sizes.n_kv_heads = fields.maybe_spelled("num_key_value_heads").value_or(sizes.n_heads);
  if (sizes.n_heads % sizes.n_kv_heads != 0)
    throw fields.error(fmt::format("n_head ({}) must be a multiple of n_head_kv ({})",
                                   sizes.n_heads, sizes.n_kv_heads));
  const Rope rope = read_rotary_dim(fields, sizes.head_dim, sizes.num_positions);
  // Kernels of the program that trained it; the last is of its vision model.
  fields.ignore({"flash_attn", "flash_rotary", "fused_dense", "img_processor"});
  return decoder(sizes, rope, read_activation(fields, "activation_function"));
}

}  // namespace

std::span<const Row> phi_rows() {
  static const std::array kRows = {
      Row{"phi",
          {"PhiForCausalLM"},
          R"({"vocab_size": 51200, "hidden_size": 2048, "intermediate_size": 8192,
 "num_hidden_layers": 24, "num_attention_heads": 32, "hidden_act": "gelu_new",
 "max_position_embeddings": 2048, "layer_norm_eps": 1e-5, "partial_rotary_factor": 0.5,
 "qk_layernorm": false, "tie_word_embeddings": false})",
          phi,
          {{"rms_norm_eps", {"layer_norm_eps"}}}},
      Row{"phi-msft",
          {"PhiForCausalLM"},
          R"({"vocab_size": 50304, "n_positions": 2048, "n_embd": 1024, "n_layer": 20,
 "n_head": 16, "rotary_dim": 32, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
 "tie_word_embeddings": false})",
          phi_msft,
          [] {
            auto spellings = gpt_spellings();
            spellings.push_back({"num_key_value_heads", {"n_head_kv"}});
            return spellings;
          }()},
  };
  return kRows;
}

}  // namespace rhea::models::hf
