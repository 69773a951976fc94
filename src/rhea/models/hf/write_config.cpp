// config.json of an exported native model, in the spelling of Transformers 5.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/models/hf/config_json.h"

namespace rhea::models::hf {
namespace {

nlohmann::ordered_json rope_json(const nn::RopeFields& rope) {
  nlohmann::ordered_json made = {{"rope_theta", rope.theta},
                                 {"rope_type", rope.scaling == "none" ? "default" : rope.scaling}};
  if (rope.scaling == "none") return made;
  made["factor"] = rope.factor;
  if (rope.scaling != "linear")
    made["original_max_position_embeddings"] = rope.original_max_position_embeddings;
  if (rope.scaling == "llama3") {
    made["low_freq_factor"] = rope.low_freq_factor;
    made["high_freq_factor"] = rope.high_freq_factor;
  } else if (rope.scaling == "yarn") {
    made["beta_fast"] = rope.beta_fast;
    made["beta_slow"] = rope.beta_slow;
    made["truncate"] = rope.truncate;
    if (rope.mscale != 0) made["mscale"] = rope.mscale;
    if (rope.mscale_all_dim != 0) made["mscale_all_dim"] = rope.mscale_all_dim;
  } else if (rope.scaling == "longrope") {
    made["short_factor"] = rope.short_factor;
    made["long_factor"] = rope.long_factor;
  }
  if (rope.attention_factor != 0) made["attention_factor"] = rope.attention_factor;
  return made;
}

}  // namespace

std::string write_config(const nn::Decoder::Config& model) {
  if (model.layers.empty()) throw Error("a model without layers has no config.json");
  const auto& block = *model.layers[0];
  const auto& attention = *block.attention;
  const auto& qkv = *attention.qkv_linear;
  const auto* rope = attention.rope.as<nn::RopeFields>();
  if (rope == nullptr)
    throw Error(
        "the rotary embedding of this model has no published form; config.json cannot be written");
  const bool qwen3 = attention.qk_norm;
  nlohmann::ordered_json made = {
      {"architectures", {qwen3 ? "Qwen3ForCausalLM" : "LlamaForCausalLM"}},
      {"model_type", qwen3 ? "qwen3" : "llama"},
      {"attention_bias", qkv.bias},
      {"attention_dropout", 0.0},
      {"head_dim", qkv.head_dim},
      {"hidden_act", "silu"},
      {"hidden_size", qkv.dim},
      {"intermediate_size", block.feed_forward->w1->out_features},
      {"max_position_embeddings", rope->max_position_embeddings},
      {"num_attention_heads", qkv.n_heads},
      {"num_hidden_layers", model.layers.size()},
      {"num_key_value_heads", qkv.n_kv_heads},
      {"rms_norm_eps", model.norm->eps},
      {"rope_parameters", rope_json(*rope)},
      {"tie_word_embeddings", model.tie_word_embeddings},
      {"dtype", "float32"},
      {"use_cache", true},
      {"vocab_size", model.vocab_size()},
  };
  if (!qwen3) made["mlp_bias"] = block.feed_forward->w1->bias;
  return made.dump(2) + "\n";
}

namespace {

// What a scaling does not read may differ.
void compare_rope(const nn::RopeFields& model, const nn::RopeFields& published,
                  std::vector<std::string>& found) {
  const nn::RopeSpec ours = model.spec(), theirs = published.spec();
  using Scaling = nn::RopeSpec::Scaling;
  const auto compare = [&](const char* field, const auto& a, const auto& b) {
    if (a != b)
      found.push_back(fmt::format("{}: the model has {}, config.json has {}", field, a, b));
  };
  compare("rope_theta", ours.theta, theirs.theta);
  compare("rope_type", model.scaling, published.scaling);
  if (ours.scaling != theirs.scaling || ours.scaling == Scaling::none) return;
  compare("rope factor", ours.factor, theirs.factor);
  if (ours.scaling != Scaling::linear)
    compare("original_max_position_embeddings", ours.original_max, theirs.original_max);
  if (ours.scaling == Scaling::llama3) {
    compare("low_freq_factor", ours.low_freq_factor, theirs.low_freq_factor);
    compare("high_freq_factor", ours.high_freq_factor, theirs.high_freq_factor);
  }
  if (ours.scaling == Scaling::yarn) {
    compare("beta_fast", ours.beta_fast, theirs.beta_fast);
    compare("beta_slow", ours.beta_slow, theirs.beta_slow);
    compare("truncate", ours.truncate, theirs.truncate);
    compare("mscale", ours.mscale, theirs.mscale);
    compare("mscale_all_dim", ours.mscale_all_dim, theirs.mscale_all_dim);
  }
  if (ours.scaling == Scaling::longrope) {
    compare("short_factor", fmt::format("{}", fmt::join(ours.short_factor, ", ")),
            fmt::format("{}", fmt::join(theirs.short_factor, ", ")));
    compare("long_factor", fmt::format("{}", fmt::join(ours.long_factor, ", ")),
            fmt::format("{}", fmt::join(theirs.long_factor, ", ")));
  }
  if (ours.scaling == Scaling::yarn || ours.scaling == Scaling::longrope)
    compare("attention_factor", ours.attention_factor, theirs.attention_factor);
}

}  // namespace

std::vector<std::string> differences(const nn::Decoder::Config& model,
                                     const PublishedConfig& published) {
  std::vector<std::string> found;
  const auto compare = [&](const char* field, const auto& ours, const auto& theirs) {
    if (ours != theirs)
      found.push_back(fmt::format("{}: the model has {}, config.json has {}", field, ours, theirs));
  };
  if (model.layers.empty()) return found;
  const auto& attention = *model.layers[0]->attention;
  const auto& qkv = *attention.qkv_linear;
  const auto& sizes = published.sizes;
  const int64_t head_dim = sizes.head_dim != 0 ? sizes.head_dim : sizes.dim / sizes.n_heads;
  compare("hidden_size", qkv.dim, sizes.dim);
  compare("num_hidden_layers", static_cast<int64_t>(model.layers.size()), sizes.n_layers);
  compare("num_attention_heads", qkv.n_heads, sizes.n_heads);
  compare("num_key_value_heads", qkv.n_kv_heads, sizes.n_kv_heads);
  compare("head_dim", qkv.head_dim, head_dim);
  compare("intermediate_size", model.layers[0]->feed_forward->w1->out_features, sizes.hidden_dim);
  compare("vocab_size", model.vocab_size(), sizes.vocab_size);
  compare("rms_norm_eps", model.norm->eps, sizes.norm_eps);
  compare("tie_word_embeddings", model.tie_word_embeddings, sizes.tied);
  compare("q_norm and k_norm", attention.qk_norm, sizes.qk_norm);
  compare("attention_bias", qkv.bias, sizes.qkv_bias);
  if (qkv.bias == sizes.qkv_bias)
    compare("attention_bias (o_proj)", attention.wo->bias, sizes.o_bias);
  compare("mlp_bias", model.layers[0]->feed_forward->w1->bias, sizes.mlp_bias);
  if (const auto* rope = attention.rope.as<nn::RopeFields>()) {
    compare("max_position_embeddings", rope->max_position_embeddings,
            published.rope.max_position_embeddings);
    compare_rope(*rope, published.rope, found);
  }
  return found;
}

}  // namespace rhea::models::hf
