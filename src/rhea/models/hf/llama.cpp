// Llama and the architectures that differ from it in a word or two.
#include <array>

#include "rhea/models/hf/build.h"
#include "rhea/models/hf/table.h"

namespace rhea::models::hf {
namespace {

nn::Decoder::Config llama(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = fields.flag("attention_bias");
  sizes.mlp_bias = fields.flag("mlp_bias");
  fields.only("rope_interleaved", "false");  // pairs are (i, i + R/2)
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  set_activation(model, read_activation(fields));
  return model;
}

// A window of all layers.
nn::Decoder::Config mistral(Fields& fields) {
  const DecoderSizes sizes = read_sizes(fields);
  // Names that other programs gave to the window and to caches.
  fields.ignore({"sliding_window_size", "prefill_chunk_size", "attention_sink_size"});
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  set_activation(model, read_activation(fields));
  set_windows(model, read_window(fields), std::vector<bool>(model.layers.size(), true));
  return model;
}

// A window of the layers that layer_types names; without it, of all.
nn::Decoder::Config ministral(Fields& fields) {
  const DecoderSizes sizes = read_sizes(fields);
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  set_activation(model, read_activation(fields));
  const int64_t window = read_window(fields);
  set_windows(model, window,
              read_sliding_layers(fields, sizes.n_layers, window, [](int64_t) { return true; }));
  return model;
}

nn::Decoder::Config seed_oss(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = fields.flag("attention_bias");
  sizes.o_bias = fields.flag("attention_out_bias");
  sizes.mlp_bias = fields.flag("mlp_bias");
  fields.dropout({"residual_dropout"});
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  set_activation(model, read_activation(fields));
  return model;
}

// The feed-forward has no gate.
const nn::DecoderNames& up_down_names() {
  static const nn::DecoderNames kNames = [] {
    nn::DecoderNames names = nn::kHuggingFaceNames;
    names.w1 = "up_proj";
    return names;
  }();
  return kNames;
}

nn::Decoder::Config arcee(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = fields.flag("attention_bias");
  sizes.mlp_bias = fields.flag("mlp_bias");
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim), up_down_names());
  set_plain_feed_forward(model, read_activation(fields));
  return model;
}

nn::Decoder::Config apertus(Fields& fields) {
  static const nn::DecoderNames kNames = [] {
    nn::DecoderNames names = up_down_names();
    names.attention_norm = "attention_layernorm";
    names.ffn_norm = "feedforward_layernorm";
    return names;
  }();
  DecoderSizes sizes = read_sizes(fields);
  sizes.qkv_bias = sizes.o_bias = fields.flag("attention_bias");
  sizes.qk_norm = true;
  fields.only("hidden_act", "\"xielu\"");
  fields.only({{"mlp_bias", "false"}, {"qk_norm", "true"}, {"post_norm", "false"}});
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim), kNames);
  set_plain_feed_forward(model, nn::XieluFeedForward::Config());
  return model;
}

// A window in three of four layers.
nn::Decoder::Config cwm(Fields& fields) {
  DecoderSizes sizes = read_sizes(fields);
  fields.only("attention_bias", "false");
  sizes.mlp_bias = fields.flag("mlp_bias");
  auto model = llama_decoder(sizes, read_rope(fields, sizes.head_dim));
  set_activation(model, read_activation(fields));
  const int64_t window = read_window(fields);
  set_windows(model, window, read_sliding_layers(fields, sizes.n_layers, window, [](int64_t layer) {
                return layer % 4 != 0;
              }));
  return model;
}

}  // namespace

std::span<const Row> llama_rows() {
  static const std::array kRows = {
      Row{"llama",
          {"LlamaForCausalLM"},
          R"({"hidden_size": 4096, "intermediate_size": 11008,
 "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000, "rms_norm_eps": 1e-6,
 "max_position_embeddings": 2048, "hidden_act": "silu", "tie_word_embeddings": false,
 "attention_bias": false, "mlp_bias": false})",
          llama},
      Row{"mistral",
          {"MistralForCausalLM"},
          R"({"hidden_size": 4096, "intermediate_size": 14336,
 "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000,
 "rms_norm_eps": 1e-6, "max_position_embeddings": 131072, "hidden_act": "silu",
 "tie_word_embeddings": false, "sliding_window": 4096})",
          mistral},
      Row{"ministral",
          {"MinistralForCausalLM"},
          R"({"hidden_size": 4096,
 "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
 "num_key_value_heads": 8, "vocab_size": 32000, "rms_norm_eps": 1e-6,
 "max_position_embeddings": 131072, "hidden_act": "silu", "tie_word_embeddings": false,
 "sliding_window": 4096})",
          ministral},
      Row{"seed_oss",
          {"SeedOssForCausalLM"},
          R"({"pad_token_id": 1, "hidden_size": 4096, "intermediate_size": 27648,
 "num_hidden_layers": 64, "num_attention_heads": 80, "num_key_value_heads": 8, "head_dim": 128,
 "vocab_size": 155136, "rms_norm_eps": 1e-6, "max_position_embeddings": 524288,
 "hidden_act": "silu", "tie_word_embeddings": false, "attention_bias": true,
 "attention_out_bias": false, "mlp_bias": false})",
          seed_oss},
      Row{"arcee",
          {"ArceeForCausalLM"},
          R"({"hidden_size": 2560, "intermediate_size": 18432,
 "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000, "rms_norm_eps": 1e-5,
 "max_position_embeddings": 4096, "hidden_act": "relu2", "tie_word_embeddings": false,
 "attention_bias": false, "mlp_bias": false})",
          arcee},
      Row{"apertus",
          {"ApertusForCausalLM"},
          R"({"pad_token_id": 3, "hidden_size": 4096, "intermediate_size": 14336,
 "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 131072, "rms_norm_eps": 1e-5,
 "max_position_embeddings": 65536, "hidden_act": "xielu", "tie_word_embeddings": false,
 "attention_bias": false, "rope_theta": 12e6, "rope_parameters": {"rope_type": "llama3",
 "rope_theta": 12e6, "factor": 8, "original_max_position_embeddings": 8192, "low_freq_factor": 1,
 "high_freq_factor": 4}})",
          apertus},
      Row{"cwm",
          {"CwmForCausalLM"},
          R"({"hidden_size": 6144, "intermediate_size": 21504,
 "num_hidden_layers": 64, "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128,
 "vocab_size": 128256, "rms_norm_eps": 1e-5, "max_position_embeddings": 131072,
 "hidden_act": "silu", "tie_word_embeddings": false, "mlp_bias": false, "sliding_window": 8192,
 "rope_theta": 1e6, "rope_parameters": {"rope_type": "llama3", "rope_theta": 1e6, "factor": 16,
 "original_max_position_embeddings": 8192, "low_freq_factor": 1, "high_freq_factor": 4}})",
          cwm},
  };
  return kRows;
}

}  // namespace rhea::models::hf
