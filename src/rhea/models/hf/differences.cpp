// What a config.json says otherwise than the model that its weights are to be loaded into.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "rhea/base/json.h"
#include "rhea/config/json.h"
#include "rhea/models/decoder_sizes.h"
#include "rhea/models/hf/config_json.h"

namespace rhea::models::hf {
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

// Of models in the form of Llama or Qwen3, in the fields of their config.json.
std::vector<std::string> field_differences(const nn::Decoder::Config& model,
                                           const nn::Decoder::Config& published) {
  std::vector<std::string> found;
  const auto compare = [&](const char* field, const auto& ours, const auto& theirs) {
    if (ours != theirs)
      found.push_back(fmt::format("{}: the model has {}, config.json has {}", field, ours, theirs));
  };
  const DecoderSizes ours = sizes_of(model), theirs = sizes_of(published);
  compare("hidden_size", ours.dim, theirs.dim);
  compare("num_hidden_layers", ours.n_layers, theirs.n_layers);
  compare("num_attention_heads", ours.n_heads, theirs.n_heads);
  compare("num_key_value_heads", ours.n_kv_heads, theirs.n_kv_heads);
  compare("head_dim", ours.head_dim, theirs.head_dim);
  const bool sparse = ours.experts.num_experts > 0 || theirs.experts.num_experts > 0;
  compare(sparse ? "moe_intermediate_size" : "intermediate_size", ours.hidden_dim,
          theirs.hidden_dim);
  compare("num_experts", ours.experts.num_experts, theirs.experts.num_experts);
  compare("num_experts_per_tok", ours.experts.top_k, theirs.experts.top_k);
  compare("norm_topk_prob", ours.experts.normalize, theirs.experts.normalize);
  compare("vocab_size", ours.vocab_size, theirs.vocab_size);
  compare("rms_norm_eps", ours.norm_eps, theirs.norm_eps);
  compare("tie_word_embeddings", ours.tied, theirs.tied);
  compare("q_norm and k_norm", ours.qk_norm, theirs.qk_norm);
  compare("attention_bias", ours.qkv_bias, theirs.qkv_bias);
  if (ours.qkv_bias == theirs.qkv_bias)
    compare("attention_bias (o_proj)", ours.o_bias, theirs.o_bias);
  compare("mlp_bias", ours.mlp_bias, theirs.mlp_bias);
  const nn::RopeFields &rope = rope_of(model), &published_rope = rope_of(published);
  compare("max_position_embeddings", rope.max_position_embeddings,
          published_rope.max_position_embeddings);
  compare_rope(rope, published_rope, found);
  return found;
}

// What a run may choose for itself, and what an override replaces.
bool is_choice(const std::string& name) {
  return name == "document_mask" || name == "init" || name == "sinks_init" || name == "_type" ||
         name == "fused" || name == "padding_idx";
}

// Of any two trees: values of fields that both have.
void compare_trees(const nlohmann::json& ours, const nlohmann::json& theirs,
                   const std::string& path, std::vector<std::string>& found) {
  if (ours.is_object() && theirs.is_object()) {
    for (const auto& [name, value] : ours.items()) {
      if (const auto at = theirs.find(name); at != theirs.end() && !is_choice(name))
        compare_trees(value, *at, path.empty() ? name : path + "." + name, found);
    }
  } else if (ours.is_array() && theirs.is_array() && ours.size() == theirs.size() &&
             !ours.empty() && ours.front().is_object()) {
    for (size_t i = 0; i < ours.size(); ++i)
      compare_trees(ours[i], theirs[i], fmt::format("{}.{}", path, i), found);
  } else if (ours.is_array() && theirs.is_array() && ours.size() != theirs.size()) {
    found.push_back(fmt::format("{}: the model has {} entries, config.json has {}", path,
                                ours.size(), theirs.size()));
  } else if (ours != theirs) {
    found.push_back(
        fmt::format("{}: the model has {}, config.json has {}", path, ours.dump(), theirs.dump()));
  }
}

bool is_llama_form(const std::string& model_type) {
  return model_type == "llama" || model_type == "qwen3" || model_type == "qwen3_moe";
}

}  // namespace

std::vector<std::string> tree_differences(const nn::Decoder::Config& ours,
                                          const nn::Decoder::Config& theirs) {
  std::vector<std::string> found;
  compare_trees(parse_json(config::to_json(ours, -1)), parse_json(config::to_json(theirs, -1)), "",
                found);
  return found;
}

std::vector<std::string> differences(const nn::Decoder::Config& model,
                                     const PublishedConfig& published) {
  std::vector<std::string> found;
  if (model.layers.empty()) return found;
  const bool same_names = model.names == published.decoder.names;
  if (!is_llama_form(published.model_type) && !same_names)
    return {fmt::format("model_type: the model is a Llama or Qwen3, config.json has {}",
                        published.model_type)};
  if (is_llama_form(published.model_type)) found = field_differences(model, published.decoder);
  return found.empty() && same_names ? tree_differences(model, published.decoder) : found;
}

}  // namespace rhea::models::hf
