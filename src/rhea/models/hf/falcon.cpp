// Falcon: three layouts of the joined projection, rotary embedding or biases by distance.
#include <array>
#include <cmath>

#include "rhea/models/hf/gpt.h"
#include "rhea/models/hf/table.h"

namespace rhea::models::hf {
namespace {

constexpr nn::DecoderNames falcon_names() {
  nn::DecoderNames names = nn::kHuggingFaceNames;
  names.prefix = "transformer";
  names.tok_embeddings = "word_embeddings";
  names.layers = "h";
  names.attention = "self_attention";
  names.wqkv = "query_key_value";
  names.wo = "dense";
  names.w1 = "dense_h_to_4h";
  names.w2 = "dense_4h_to_h";
  names.norm = "ln_f";
  return names;
}

constexpr nn::DecoderNames two_norm_names() {
  nn::DecoderNames names = falcon_names();
  names.attention_norm = "ln_attn";
  names.ffn_norm = "ln_mlp";
  return names;
}

struct Layout {
  bool grouped = false;      // new_decoder_architecture: rows kv head by kv head
  bool multi_query = false;  // one kv head behind all query heads
  bool parallel = false;
  int64_t num_norms = 1;  // of a parallel block
};

Layout read_layout(Fields& fields) {
  Layout layout;
  layout.grouped = fields.flag("new_decoder_architecture");
  layout.multi_query = fields.flag("multi_query") && !layout.grouped;
  layout.parallel = fields.flag("parallel_attn");
  layout.num_norms =
      fields.maybe_integer("num_ln_in_parallel_attn").value_or(layout.grouped ? 2 : 1);
  if (layout.grouped && !layout.parallel)
    throw fields.error("parallel_attn = false and new_decoder_architecture = true contradict");
  if (layout.num_norms > (layout.grouped ? 2 : 1))
    throw fields.error(fmt::format("num_ln_in_parallel_attn = {} is not supported; supported: {}",
                                   layout.num_norms, layout.grouped ? "1, 2" : "1"));
  return layout;
}

DecoderSizes read_falcon_sizes(Fields& fields, const Layout& layout) {
  DecoderSizes sizes;
  sizes.dim = fields.spelled("hidden_size");
  sizes.n_layers = fields.spelled("num_hidden_layers", kMostLayers);
  sizes.n_heads = fields.spelled("num_attention_heads");
  sizes.head_dim = share_of_heads(fields, sizes);
  // Only the grouped layout reads num_kv_heads.
  const int64_t kv_heads = fields.maybe_spelled("num_key_value_heads").value_or(sizes.n_heads);
  sizes.n_kv_heads = layout.grouped ? kv_heads : layout.multi_query ? 1 : sizes.n_heads;
  if (sizes.n_heads % sizes.n_kv_heads != 0)
    throw fields.error(
        fmt::format("num_attention_heads ({}) must be a multiple of num_kv_heads "
                    "({})",
                    sizes.n_heads, sizes.n_kv_heads));
  sizes.hidden_dim = fields.maybe_integer("ffn_hidden_size").value_or(4 * sizes.dim);
  sizes.vocab_size = fields.integer("vocab_size", kLargestVocabulary);
  sizes.norm_eps = read_eps(fields);
  sizes.tied = fields.flag("tie_word_embeddings");
  sizes.qkv_bias = sizes.o_bias = sizes.mlp_bias = fields.flag("bias");
  fields.dropout({"attention_dropout", "hidden_dropout"});
  fields.only("is_encoder_decoder", "false");
  fields.only("chunk_size_feed_forward", "0");
  fields.only("apply_residual_connection_post_layernorm", "false");
  fields.ignore({"is_decoder"});
  return sizes;
}

// Falcon adds slope * position, in bfloat16, before it divides the scores by sqrt(head_dim).
//
// Transformers' eager attention adds it twice, with the scores and with the mask; its sdpa
// attention adds it once, and so were the models trained. A file says which of the two it means.
nn::Alibi::Config read_alibi(Fields& fields, const DecoderSizes& sizes) {
  const std::string attention =
      fields.maybe_text("attn_implementation")
          .value_or(fields.maybe_text("_attn_implementation").value_or("eager"));
  const bool twice = attention == "eager";
  if (twice)
    fields.warn(
        "alibi: the biases are added twice, as Transformers' eager attention does; "
        "hf_overrides.attn_implementation=sdpa has them once");
  nn::Alibi::Config alibi;
  alibi.n_heads = sizes.n_heads;
  alibi.factor = (twice ? 2 : 1) / std::sqrt(static_cast<double>(sizes.head_dim));
  alibi.in_bfloat16 = true;
  return alibi;
}

nn::Decoder::Config falcon(Fields& fields) {
  static constexpr nn::DecoderNames kNames = falcon_names(), kTwoNorms = two_norm_names();
  const Layout layout = read_layout(fields);
  const DecoderSizes sizes = read_falcon_sizes(fields, layout);
  const Rope rope = read_rope(fields, sizes.head_dim);
  auto model = llama_decoder(sizes, rope, layout.num_norms == 2 ? kTwoNorms : kNames);
  use_layer_norms(model, layer_norm(sizes.dim, sizes.norm_eps));
  set_plain_feed_forward(model, read_activation(fields, "activation"));
  join_qkv(model, !layout.multi_query);
  if (fields.flag("alibi")) use_alibi(model, read_alibi(fields, sizes));
  if (!layout.parallel) return model;
  use_one_parallel_norm(model);
  if (layout.num_norms == 1) return model;
  for_each_block(model, [](nn::TransformerBlock::Config& block, auto&, int64_t) {
    block.ffn_norm = block.attention_norm;
  });
  return model;
}

}  // namespace

std::span<const Row> falcon_rows() {
  static const std::array kRows = {
      Row{"falcon",
          {"FalconForCausalLM"},
          R"({"vocab_size": 65024, "hidden_size": 4544, "num_hidden_layers": 32,
 "num_attention_heads": 71, "layer_norm_epsilon": 1e-5, "alibi": false,
 "new_decoder_architecture": false, "multi_query": true, "parallel_attn": true, "bias": false,
 "max_position_embeddings": 2048, "activation": "gelu", "tie_word_embeddings": true})",
          falcon,
          {{"hidden_size", {"hidden_size", "n_embed"}},
           {"num_hidden_layers", {"num_hidden_layers", "n_layer"}},
           {"num_attention_heads", {"num_attention_heads", "n_head"}},
           {"num_key_value_heads", {"num_kv_heads", "n_head_kv"}},
           {"intermediate_size", {"ffn_hidden_size"}},
           {"rms_norm_eps", {"layer_norm_epsilon"}}},
          false},
  };
  return kRows;
}

}  // namespace rhea::models::hf
