// GPT-J and CodeGen: branches side by side behind one norm, interleaved rotary pairs.
//
// T tokens, N heads, H head dim
#include <array>

#include "rhea/models/hf/gpt.h"
#include "rhea/models/hf/table.h"
#include "rhea/ops/ops.h"

namespace rhea::models::hf {

struct CodeGenQKV {
  // One matrix in four groups of heads, as it was trained on four devices: of each group the
  // queries, the values, the keys.
  struct Config : nn::QKV::Config {
    Slot<nn::Linear::Config> wqkv;
    static constexpr int64_t kGroups = 4;
    Result forward(nn::Trace& trace, nn::Value x_TD) const override {
      const nn::Value y = call(trace, names->wqkv, *wqkv, x_TD);
      const int64_t t = y.dim(0), per_group = n_heads / kGroups;
      const nn::Value grouped = ops::reshape(y, {t, kGroups, 3, per_group, head_dim});
      const auto part = [&](int64_t i) {
        return ops::reshape(ops::slice_dim(grouped, 2, i, i + 1), {t, n_heads, head_dim});
      };
      return {part(0), part(2), part(1)};
    }
    void fields(Visitor& v) override {
      nn::QKV::Config::fields(v);
      v(names->wqkv, wqkv, "query, value and key projections of each group");
    }
  };
};

namespace {

constexpr nn::DecoderNames gptj_names() {
  nn::DecoderNames names = nn::kHuggingFaceNames;
  names.prefix = "transformer";
  names.tok_embeddings = "wte";
  names.layers = "h";
  names.attention_norm = "ln_1";
  names.attention = "attn";
  names.wo = "out_proj";
  names.w1 = "fc_in";
  names.w2 = "fc_out";
  names.norm = "ln_f";
  return names;
}

nn::Decoder::Config gptj(Fields& fields) {
  static constexpr nn::DecoderNames kNames = gptj_names();
  GptSizes sizes = read_gpt_sizes(fields);
  sizes.mlp_bias = true;
  sizes.interleaved_rope = true;
  const Rope rope = read_rotary_dim(fields, sizes.head_dim, sizes.num_positions);
  auto model = llama_decoder(sizes, rope, kNames);
  use_layer_norms(model, layer_norm(sizes.dim, sizes.norm_eps));
  set_plain_feed_forward(model, read_activation(fields, "activation_function"));
  use_one_parallel_norm(model);
  model.lm_head->bias = true;
  // How the scores are computed, of other programs.
  fields.ignore({"scale_attn_weights", "rotary"});
  return model;
}

nn::Decoder::Config codegen(Fields& fields) {
  auto model = gptj(fields);
  for_each_block(model, [&](auto&, nn::Attention::Config& attention, int64_t) {
    const auto& split = *attention.qkv_linear.as<nn::SplitQKV::Config>();
    if (split.n_heads % CodeGenQKV::Config::kGroups != 0)
      throw fields.error(fmt::format("n_head ({}) must be a multiple of {}", split.n_heads,
                                     CodeGenQKV::Config::kGroups));
    CodeGenQKV::Config joined;
    static_cast<nn::QKV::Config&>(joined) = split;
    joined.wqkv =
        linear(split.wq->in_features, 3 * split.wq->out_features, false, split.wq->init.init());
    attention.qkv_linear = joined;
  });
  return model;
}

}  // namespace

std::span<const Row> gptj_rows() {
  static constexpr std::string_view kDefaults =
      R"({"vocab_size": 50400, "n_positions": 2048, "n_embd": 4096, "n_layer": 28, "n_head": 16,
 "rotary_dim": 64, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
 "tie_word_embeddings": false})";
  static const std::array kRows = {
      Row{"gptj", {"GPTJForCausalLM"}, kDefaults, gptj, gpt_spellings(), false},
      Row{"codegen", {"CodeGenForCausalLM"}, kDefaults, codegen, gpt_spellings(), false},
  };
  return kRows;
}

}  // namespace rhea::models::hf
