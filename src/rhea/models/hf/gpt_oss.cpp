// gpt-oss: attention sinks, windows on every other layer, experts with biases and a clamped gate.
#include <array>

#include "rhea/models/hf/moe.h"
#include "rhea/models/hf/table.h"

namespace rhea::models::hf {
namespace {

constexpr nn::MoeNames kMoeNames{.gate = "router"};

nn::Decoder::Config gpt_oss(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = fields.flag("attention_bias");
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  const int64_t window = read_window(fields);
  set_windows(model, window, read_sliding_layers(fields, sizes.n_layers, window, [](int64_t layer) {
                return layer % 2 == 0;
              }));
  for_each_block(model, [](auto&, nn::Attention::Config& attention, int64_t layer) {
    attention.sinks = true;
    attention.sinks_init = depth_init(layer);
  });
  Mixture mixture;
  mixture.names = &kMoeNames;
  mixture.router.num_experts = read_experts(fields);
  mixture.router.top_k = read_top_k(fields, mixture.router.num_experts);
  mixture.router.score = "softmax_of_chosen";
  mixture.router.gate->bias = true;
  mixture.hidden_dim = sizes.hidden_dim;
  nn::JoinedExperts::Config experts;
  experts.activation = "clamped_swiglu";
  experts.transposed = experts.bias = true;
  experts.alpha = fields.number("swiglu_alpha");
  experts.limit = read_positive(fields, "swiglu_limit");
  mixture.joined = &experts;
  fields.only("hidden_act", "\"silu\"");
  read_router_losses(fields);
  // Names of the first release for fields that stand beside them.
  fields.ignore({"experts_per_token", "initial_context_length"});
  set_mixtures(model, mixture, [](int64_t) { return true; });
  return model;
}

}  // namespace

std::span<const Row> gpt_oss_rows() {
  static const std::array kRows = {
      Row{"gpt_oss",
          {"GptOssForCausalLM"},
          R"({"hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 36,
 "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088,
 "rms_norm_eps": 1e-5, "max_position_embeddings": 131072, "hidden_act": "silu",
 "rope_theta": 150000.0,
 "rope_parameters": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
 "truncate": false, "original_max_position_embeddings": 4096},
 "tie_word_embeddings": false, "attention_bias": true, "sliding_window": 128,
 "num_local_experts": 128, "num_experts_per_tok": 4, "swiglu_alpha": 1.702, "swiglu_limit": 7.0})",
          gpt_oss,
          {{"num_experts", {"num_local_experts", "num_experts"}}}},
  };
  return kRows;
}

}  // namespace rhea::models::hf
