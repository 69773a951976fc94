// Phi-3 and Phi-4-mini: joined projections, long rope.
#include <array>

#include "rhea/models/hf/build.h"
#include "rhea/models/hf/table.h"

namespace rhea::models::hf {
namespace {

nn::Decoder::Config phi3(Fields& fields) {
  const DecoderSizes sizes = read_sizes(fields);
  fields.only({{"attention_bias", "false"},
               {"mlp_bias", "false"},
               {"lm_head_bias", "false"},
               {"full_attn_mod", "1"},
               {"interpolate_factor", "1"}});
  fields.dropout({"resid_pdrop", "embd_pdrop"});
  // Files of the first release call long rope "su", and later ones "yarn".
  auto model =
      llama_decoder(sizes, read_rope(fields, sizes.head_dim, {.longrope = {"su", "yarn"}}));
  set_activation(model, read_activation(fields));
  set_windows(model, read_window(fields), std::vector<bool>(model.layers.size(), true));
  join_qkv(model);
  join_gate_up(model);
  return model;
}

}  // namespace

std::span<const Row> phi3_rows() {
  static const std::array kRows = {
      Row{"phi3",
          {"Phi3ForCausalLM"},
          R"({"pad_token_id": 32000, "hidden_size": 3072, "intermediate_size": 8192,
 "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32064, "rms_norm_eps": 1e-5,
 "max_position_embeddings": 4096, "original_max_position_embeddings": 4096, "hidden_act": "silu",
 "tie_word_embeddings": false})",
          phi3},
  };
  return kRows;
}

}  // namespace rhea::models::hf
