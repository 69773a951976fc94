// The mixtures of Qwen, and Qwen3-Next with its gated delta nets.
#include <algorithm>
#include <array>

#include "rhea/models/hf/moe.h"
#include "rhea/models/hf/table.h"
#include "rhea/nn/gated_delta_net.h"

namespace rhea::models::hf {
namespace {

constexpr nn::MoeNames kSharedNames{.shared = "shared_expert"};

// Layers with experts: every decoder_sparse_step-th but those of mlp_only_layers.
std::function<bool(int64_t)> read_sparse_layers(Fields& fields) {
  const auto dense = fields.integers("mlp_only_layers");
  const int64_t step = fields.integer("decoder_sparse_step");
  return [dense, step](int64_t layer) {
    return (layer + 1) % step == 0 && std::find(dense.begin(), dense.end(), layer) == dense.end();
  };
}

Mixture read_mixture(Fields& fields, nn::Decoder::Config& model) {
  Mixture mixture;
  mixture.router.num_experts = read_experts(fields);
  mixture.router.top_k = read_top_k(fields, mixture.router.num_experts);
  mixture.router.normalize = fields.flag("norm_topk_prob");
  mixture.hidden_dim = fields.integer("moe_intermediate_size");
  mixture.activation = read_activation(fields);
  set_activation(model, mixture.activation);
  read_router_losses(fields);
  return mixture;
}

void read_shared_expert(Fields& fields, Mixture& mixture) {
  mixture.names = &kSharedNames;
  mixture.shared_dim = fields.integer("shared_expert_intermediate_size");
  mixture.shared_gate = true;
}

nn::Decoder::Config qwen2_moe(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = fields.flag("qkv_bias");
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  read_qwen_windows(fields, model, QwenWindows::even_before);
  Mixture mixture = read_mixture(fields, model);
  read_shared_expert(fields, mixture);
  set_mixtures(model, mixture, read_sparse_layers(fields));
  return model;
}

nn::Decoder::Config qwen3_moe(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = fields.flag("attention_bias");
  sizes.qk_norm = true;
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  const int64_t window = read_window(fields, 0);  // 0 where nothing slides
  if (fields.flag("use_sliding_window") && window > 0)
    set_windows(model, window, std::vector<bool>(model.layers.size(), true));
  fields.ignore({"max_window_layers"});
  const Mixture mixture = read_mixture(fields, model);
  set_mixtures(model, mixture, read_sparse_layers(fields));
  return model;
}

// ---- Qwen3-Next
constexpr nn::DecoderNames linear_names() {
  nn::DecoderNames names = nn::kHuggingFaceNames;
  names.attention = "linear_attn";
  return names;
}
constexpr nn::DecoderNames kLinearNames = linear_names();

// Which layers are linear attention; absent: all but every fourth.
std::vector<bool> read_linear_layers(Fields& fields, int64_t n_layers) {
  const auto types = fields.texts("layer_types");
  const int64_t interval = fields.maybe_integer("full_attention_interval").value_or(4);
  if (!types.empty() && static_cast<int64_t>(types.size()) != n_layers)
    throw fields.error(fmt::format("layer_types has {} entries for num_hidden_layers = {}",
                                   types.size(), n_layers));
  std::vector<bool> linear;
  for (int64_t i = 0; i < n_layers; ++i) {
    if (types.empty()) {
      linear.push_back((i + 1) % interval != 0);
      continue;
    }
    const std::string& type = types[static_cast<size_t>(i)];
    if (type != "linear_attention" && type != "full_attention")
      throw fields.error(
          fmt::format("layer_types holds '{}'; supported: linear_attention, full_attention", type));
    linear.push_back(type == "linear_attention");
  }
  return linear;
}

nn::GatedDeltaNet::Config read_delta_net(Fields& fields, const DecoderSizes& sizes) {
  nn::GatedDeltaNet::Config made;
  made.dim = sizes.dim;
  made.num_key_heads = fields.integer("linear_num_key_heads");
  made.num_value_heads = fields.integer("linear_num_value_heads");
  made.key_head_dim = fields.integer("linear_key_head_dim");
  made.value_head_dim = fields.integer("linear_value_head_dim");
  made.conv_taps = fields.integer("linear_conv_kernel_dim", 64);
  made.eps = sizes.norm_eps;
  if (made.num_value_heads % made.num_key_heads != 0)
    throw fields.error(
        fmt::format("linear_num_value_heads ({}) must be a multiple of linear_num_key_heads ({})",
                    made.num_value_heads, made.num_key_heads));
  return made;
}

// Queries with a gate, in the place of plain projections.
nn::GatedQKV::Config gated(const nn::SplitQKV::Config& split) {
  nn::GatedQKV::Config made;
  static_cast<nn::QKV::Config&>(made) = split;
  made.wq = linear(split.wq->in_features, 2 * split.wq->out_features, split.wq->bias,
                   split.wq->init.init());
  made.wk = split.wk;
  made.wv = split.wv;
  return made;
}

nn::Decoder::Config qwen3_next(Fields& fields) {
  fields.only("hidden_act", "\"silu\"");  // it would also be that of the convolution
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = fields.flag("attention_bias");
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  Mixture mixture = read_mixture(fields, model);
  read_shared_expert(fields, mixture);
  set_mixtures(model, mixture, read_sparse_layers(fields));
  const auto is_linear = read_linear_layers(fields, sizes.n_layers);
  auto delta = read_delta_net(fields, sizes);
  const InitRules init = init_rules(sizes.dim);
  delta.init = init.qkv;
  const auto norm = [&](int64_t dim) { return rms_norm(dim, sizes.norm_eps, 1); };
  model.norm = norm(sizes.dim);
  for_each_block(model, [&](nn::TransformerBlock::Config& block, nn::Attention::Config& attention,
                            int64_t layer) {
    block.attention_norm = block.ffn_norm = norm(sizes.dim);
    if (is_linear[static_cast<size_t>(layer)]) {
      delta.out_proj =
          linear(delta.num_value_heads * delta.value_head_dim, sizes.dim, false, init.wo(layer));
      block.names = &kLinearNames;
      block.attention = delta;
      return;
    }
    const auto* split = attention.qkv_linear.as<nn::SplitQKV::Config>();
    RHEA_CHECK(split != nullptr, "the decoder of Llama has split projections");
    attention.qkv_linear = gated(*split);
    attention.q_norm = attention.k_norm = norm(sizes.head_dim);
  });
  return model;
}

}  // namespace

std::span<const Row> qwen_moe_rows() {
  static const std::vector<Spelling> kSpellings = {
      {"num_experts", {"num_experts", "num_local_experts"}}};
  static const std::array kRows = {
      Row{"qwen2_moe",
          {"Qwen2MoeForCausalLM"},
          R"({"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24,
 "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 151936, "rms_norm_eps": 1e-6,
 "max_position_embeddings": 32768, "hidden_act": "silu", "tie_word_embeddings": false,
 "use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 28, "qkv_bias": true,
 "decoder_sparse_step": 1, "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632,
 "num_experts": 60, "num_experts_per_tok": 4, "norm_topk_prob": false})",
          qwen2_moe,
          kSpellings},
      Row{"qwen3_moe",
          {"Qwen3MoeForCausalLM"},
          R"({"hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24,
 "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 151936, "rms_norm_eps": 1e-6,
 "max_position_embeddings": 32768, "hidden_act": "silu", "tie_word_embeddings": false,
 "attention_bias": false, "use_sliding_window": false, "decoder_sparse_step": 1,
 "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8,
 "norm_topk_prob": false})",
          qwen3_moe,
          kSpellings},
      Row{"qwen3_next",
          {"Qwen3NextForCausalLM"},
          R"({"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 48,
 "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 151936,
 "rms_norm_eps": 1e-6, "max_position_embeddings": 32768, "hidden_act": "silu",
 "partial_rotary_factor": 0.25, "tie_word_embeddings": false, "attention_bias": false,
 "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
 "linear_num_key_heads": 16, "linear_num_value_heads": 32, "decoder_sparse_step": 1,
 "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "num_experts": 512,
 "num_experts_per_tok": 10, "norm_topk_prob": true})",
          qwen3_next,
          kSpellings},
  };
  return kRows;
}

}  // namespace rhea::models::hf
