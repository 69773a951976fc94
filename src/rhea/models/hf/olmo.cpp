// OLMo: norms without parameters, then norms on what the branches give.
#include <array>

#include "rhea/models/hf/build.h"
#include "rhea/models/hf/table.h"

namespace rhea::models::hf {
namespace {

nn::Decoder::Config olmo(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = fields.flag("attention_bias");
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  set_activation(model, read_activation(fields));
  const auto norm = layer_norm(sizes.dim, 1e-5, false, false);
  const double bound = maybe_positive(fields, "clip_qkv");
  model.norm = norm;
  for_each_block(
      model, [&](nn::TransformerBlock::Config& block, nn::Attention::Config& attention, int64_t) {
        block.attention_norm = block.ffn_norm = norm;
        attention.clip_qkv = bound;
      });
  return model;
}

// Norms on what the branches give, none on what they get.
void norm_outputs(nn::Decoder::Config& model) {
  for_each_block(model, [](nn::TransformerBlock::Config& block, auto&, int64_t) {
    block.post_attention_norm = block.attention_norm;
    block.post_ffn_norm = block.ffn_norm;
    block.attention_norm = {};
    block.ffn_norm = {};
  });
}

nn::Decoder::Config olmo2_decoder(Fields& fields, const DecoderSizes& sizes, const Rope& rope) {
  auto model = llama_decoder(sizes, rope);
  set_activation(model, read_activation(fields));
  norm_outputs(model);
  norm_full_width(model, sizes);
  return model;
}

DecoderSizes olmo2_sizes(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = fields.flag("attention_bias");
  return sizes;
}

nn::Decoder::Config olmo2(Fields& fields) {
  const DecoderSizes sizes = olmo2_sizes(fields);
  return olmo2_decoder(fields, sizes, read_rope(fields, sizes.head_dim));
}

// Three of four layers slide.
bool three_of_four(int64_t layer) { return (layer + 1) % 4 != 0; }

nn::Decoder::Config olmo3(Fields& fields) {
  const DecoderSizes sizes = olmo2_sizes(fields);
  const LayerRopes ropes = read_layer_ropes(fields, sizes.head_dim);
  fields.only("rope_local_base_freq", "5e5");  // Transformers takes this whatever a file says
  auto model = olmo2_decoder(fields, sizes, ropes.full);
  const int64_t window = read_window(fields);
  const auto sliding = read_sliding_layers(fields, sizes.n_layers, window, three_of_four);
  set_windows(model, window, sliding);
  set_ropes(model, ropes, sliding);
  return model;
}

// Layers without a window have no rotary embedding where others have one.
nn::Decoder::Config exaone4(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.qk_norm = true;
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  set_activation(model, read_activation(fields));
  norm_outputs(model);
  const int64_t window = read_window(fields);
  // Published files may say the pattern in letters, beside layer_types; those win.
  const int64_t pattern = window == 0 || fields.given("layer_types")
                              ? 0
                              : fields.maybe_integer("sliding_window_pattern").value_or(0);
  fields.ignore({"sliding_window_pattern"});
  const auto sliding = read_sliding_layers(fields, sizes.n_layers, window, [&](int64_t layer) {
    return pattern > 0 && (layer + 1) % pattern != 0;
  });
  if (window == 0) return model;
  set_windows(model, window, sliding);
  for_each_block(model, [&](auto&, nn::Attention::Config& attention, int64_t layer) {
    if (!sliding[static_cast<size_t>(layer)]) attention.rope = {};
  });
  return model;
}

}  // namespace

std::span<const Row> olmo_rows() {
  static const std::array kRows = {
      Row{"olmo",
          {"OlmoForCausalLM"},
          R"({"pad_token_id": 1, "hidden_size": 4096, "intermediate_size": 11008,
 "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 50304,
 "max_position_embeddings": 2048, "hidden_act": "silu", "tie_word_embeddings": false,
 "attention_bias": false})",
          olmo},
      Row{"olmo2",
          {"Olmo2ForCausalLM"},
          R"({"pad_token_id": 1, "hidden_size": 4096, "intermediate_size": 11008,
 "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 50304, "rms_norm_eps": 1e-5,
 "max_position_embeddings": 2048, "hidden_act": "silu", "tie_word_embeddings": false,
 "attention_bias": false})",
          olmo2},
      Row{"olmo3",
          {"Olmo3ForCausalLM"},
          R"({"pad_token_id": 1, "hidden_size": 4096, "intermediate_size": 11008,
 "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 50304, "rms_norm_eps": 1e-5,
 "max_position_embeddings": 2048, "hidden_act": "silu", "rope_theta": 5e5,
 "rope_local_base_freq": 5e5, "tie_word_embeddings": false, "attention_bias": false,
 "sliding_window": 4096})",
          olmo3},
      Row{"exaone4",
          {"Exaone4ForCausalLM"},
          R"({"hidden_size": 4096, "intermediate_size": 16384,
 "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
 "vocab_size": 102400, "rms_norm_eps": 1e-5, "max_position_embeddings": 2048,
 "hidden_act": "silu", "tie_word_embeddings": false, "sliding_window": 4096,
 "sliding_window_pattern": 4})",
          exaone4},
  };
  return kRows;
}

}  // namespace rhea::models::hf
