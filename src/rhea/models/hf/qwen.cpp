// Qwen2 and Qwen3.
#include <array>

#include "rhea/models/hf/build.h"
#include "rhea/models/hf/table.h"

namespace rhea::models::hf {

void read_qwen_windows(Fields& fields, nn::Decoder::Config& model, QwenWindows windows) {
  const bool slides = fields.flag("use_sliding_window");
  const int64_t window = read_window(fields, 0);  // 0 where nothing slides
  const int64_t bound = fields.maybe_integer("max_window_layers", kLargestSize, 0).value_or(0);
  fields.only("use_mrope", "false");
  const bool has_window = slides && window > 0;
  const auto sliding = read_sliding_layers(fields, static_cast<int64_t>(model.layers.size()),
                                           has_window ? window : 0, [&](int64_t layer) {
                                             if (windows == QwenWindows::even_before)
                                               return has_window && layer < bound && layer % 2 == 0;
                                             return has_window && layer >= bound;
                                           });
  if (has_window) set_windows(model, window, sliding);
}

namespace {

nn::Decoder::Config qwen2(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = true;
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  set_activation(model, read_activation(fields));
  read_qwen_windows(fields, model);
  return model;
}

nn::Decoder::Config qwen3(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = fields.flag("attention_bias");
  sizes.qk_norm = true;
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  set_activation(model, read_activation(fields));
  read_qwen_windows(fields, model);
  return model;
}

}  // namespace

std::span<const Row> qwen_rows() {
  static const std::array kRows = {
      Row{"qwen2",
          {"Qwen2ForCausalLM"},
          R"({"hidden_size": 4096, "intermediate_size": 22016,
 "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
 "vocab_size": 151936, "rms_norm_eps": 1e-6, "max_position_embeddings": 32768,
 "hidden_act": "silu", "tie_word_embeddings": false, "use_sliding_window": false,
 "sliding_window": 4096, "max_window_layers": 28})",
          qwen2},
      Row{"qwen3",
          {"Qwen3ForCausalLM"},
          R"({"hidden_size": 4096, "intermediate_size": 22016,
 "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 128,
 "vocab_size": 151936, "rms_norm_eps": 1e-6, "max_position_embeddings": 32768,
 "hidden_act": "silu", "tie_word_embeddings": false, "attention_bias": false,
 "use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 28})",
          qwen3},
  };
  return kRows;
}

}  // namespace rhea::models::hf
