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
              read_sliding_layers(fields, sizes.n_layers, [](int64_t) { return true; }));
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
  };
  return kRows;
}

}  // namespace rhea::models::hf
