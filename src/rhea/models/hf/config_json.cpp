// Fields of config.json, one by one.
#include "rhea/models/hf/config_json.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "rhea/base/error.h"
#include "rhea/base/json_depth.h"
#include "rhea/base/mapped_file.h"

namespace rhea::models::hf {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 2> kModelTypes = {"llama", "qwen3"};

// Known to have no effect on what training computes here.
constexpr std::string_view kNoEffect[] = {"architectures",
                                          "model_type",
                                          "transformers_version",
                                          "torch_dtype",
                                          "dtype",
                                          "use_cache",
                                          "bos_token_id",
                                          "eos_token_id",
                                          "pad_token_id",
                                          "initializer_range",
                                          "pretraining_tp",
                                          "_name_or_path",
                                          "max_window_layers",
                                          "is_llama_config",
                                          "_attn_implementation_autoset",
                                          "id2label",
                                          "label2id",
                                          "output_attentions",
                                          "output_hidden_states",
                                          "return_dict",
                                          "tokenizer_class",
                                          "keys_to_ignore_at_inference",
                                          "problem_type",
                                          "transformers.js_config"};

// Beyond them a number is damage, not a model.
constexpr int64_t kLargestSize = 1 << 20;
constexpr int64_t kLargestVocabulary = 1 << 22;
constexpr int64_t kMostLayers = 10'000;
constexpr double kMostParameters = 1e15;
constexpr int64_t kMostPositions = std::numeric_limits<int32_t>::max();

// Reads fields of one object and remembers which were read.
class Fields {
 public:
  Fields(const json& object, std::string origin) : object_(object), origin_(std::move(origin)) {
    if (!object.is_object()) throw Error("{}: expected a JSON object", origin_);
  }

  bool has(const char* name) const { return object_.contains(name) && !object_[name].is_null(); }
  const json& raw(const char* name) {
    used_.insert(name);
    return object_[name];
  }
  int64_t integer(const char* name, std::optional<int64_t> fallback = {},
                  int64_t largest = kLargestSize) {
    used_.insert(name);
    if (!has(name)) return required(name, fallback);
    const json& value = object_[name];
    // As a double, because json converts its unsigned and signed numbers into each other unchecked.
    const double size = value.is_number_integer() ? value.get<double>() : 0;
    if (size < 1 || size > static_cast<double>(largest))
      throw Error("{}: {} must be a positive integer of at most {}, got {}", origin_, name, largest,
                  value.dump());
    return value.get<int64_t>();
  }
  double number(const char* name, std::optional<double> fallback = {}) {
    used_.insert(name);
    if (!has(name)) return required(name, fallback);
    if (!object_[name].is_number())
      throw Error("{}: {} must be a number, got {}", origin_, name, object_[name].dump());
    return object_[name].get<double>();
  }
  bool flag(const char* name, bool fallback) {
    used_.insert(name);
    if (!has(name)) return fallback;
    if (!object_[name].is_boolean())
      throw Error("{}: {} must be true or false, got {}", origin_, name, object_[name].dump());
    return object_[name].get<bool>();
  }
  std::string text(const char* name, std::optional<std::string> fallback = {}) {
    used_.insert(name);
    if (!has(name)) return required(name, fallback);
    if (!object_[name].is_string())
      throw Error("{}: {} must be a string, got {}", origin_, name, object_[name].dump());
    return object_[name].get<std::string>();
  }
  std::vector<double> numbers(const char* name) {
    used_.insert(name);
    if (!has(name)) return {};
    std::vector<double> values;
    if (!object_[name].is_array()) throw Error("{}: {} must be a list of numbers", origin_, name);
    for (const json& item : object_[name]) {
      if (!item.is_number())
        throw Error("{}: {} must be a list of numbers, it holds {}", origin_, name, item.dump());
      values.push_back(item.get<double>());
    }
    return values;
  }
  // A field that must be absent, null or one of the values that change nothing.
  void only(const char* name, std::initializer_list<json> harmless) {
    used_.insert(name);
    if (!has(name)) return;
    for (const json& value : harmless) {
      if (object_[name] == value) return;
    }
    throw Error("{}: {} = {} is not supported", origin_, name, object_[name].dump());
  }
  void refuse_unknown() const {
    std::vector<std::string> unknown;
    for (const auto& [name, value] : object_.items()) {
      const bool harmless =
          std::find(std::begin(kNoEffect), std::end(kNoEffect), name) != std::end(kNoEffect);
      if (!harmless && !used_.contains(name))
        unknown.push_back(fmt::format("{} = {}", name, value.dump()));
    }
    if (!unknown.empty())
      throw Error("{}: fields that are not understood and may change the computation: {}", origin_,
                  fmt::join(unknown, ", "));
  }

 private:
  template <class T>
  T required(const char* name, const std::optional<T>& fallback) const {
    if (!fallback) throw Error("{}: {} is missing", origin_, name);
    return *fallback;
  }

  const json& object_;
  std::string origin_;
  std::set<std::string> used_;
};

// rope_parameters (v5), else rope_scaling and rope_theta (v4).
void read_rope(Fields& top, const std::string& origin, nn::RopeFields& rope) {
  const double context = static_cast<double>(rope.max_position_embeddings);
  const bool v5 = top.has("rope_parameters");
  const bool nested = v5 || top.has("rope_scaling");
  const double top_theta = top.number("rope_theta", 0);
  if (v5 && top.has("rope_scaling"))
    throw Error("{}: rope_parameters and rope_scaling are both given", origin);
  if (!nested) {
    top.raw("rope_parameters");
    top.raw("rope_scaling");
    rope.theta = top_theta != 0 ? top_theta : 10000;
    return;
  }
  const char* place = v5 ? "rope_parameters" : "rope_scaling";
  Fields inner(top.raw(place), fmt::format("{}: {}", origin, place));
  const double inner_theta = inner.number("rope_theta", 0);
  if (inner_theta != 0 && top_theta != 0 && inner_theta != top_theta)
    throw Error("{}: rope_theta is {} at the top and {} in {}", origin, top_theta, inner_theta,
                place);
  rope.theta = inner_theta != 0 ? inner_theta : (top_theta != 0 ? top_theta : 10000);
  const std::string type = inner.text("rope_type", inner.text("type", "default"));
  inner.text("type", "default");
  const auto scaling = [&] {
    try {
      return nn::parse_scaling(type);
    } catch (const Error& error) {
      throw Error("{}: {}: {}", origin, place, error.what());
    }
  }();
  rope.scaling = type == "default" ? "none" : type;
  inner.only("partial_rotary_factor", {1.0, 1});
  using Scaling = nn::RopeSpec::Scaling;
  if (scaling != Scaling::none) {
    const bool may_derive = scaling == Scaling::yarn || scaling == Scaling::longrope;
    const double original = inner.number("original_max_position_embeddings",
                                         top.number("original_max_position_embeddings", 0));
    if (scaling == Scaling::llama3 && original == 0)
      throw Error("{}: {}.original_max_position_embeddings is missing", origin, place);
    rope.original_max_position_embeddings = original != 0 ? original : context;
    if (may_derive)
      rope.factor = inner.number("factor", context / rope.original_max_position_embeddings);
    else
      rope.factor = inner.number("factor");
  }
  if (scaling == Scaling::llama3) {
    rope.low_freq_factor = inner.number("low_freq_factor");
    rope.high_freq_factor = inner.number("high_freq_factor");
  }
  if (scaling == Scaling::yarn) {
    rope.beta_fast = inner.number("beta_fast", 32);
    rope.beta_slow = inner.number("beta_slow", 1);
    rope.mscale = inner.number("mscale", 0);
    rope.mscale_all_dim = inner.number("mscale_all_dim", 0);
    rope.truncate = inner.flag("truncate", true);
  }
  if (scaling == Scaling::longrope) {
    rope.short_factor = inner.numbers("short_factor");
    rope.long_factor = inner.numbers("long_factor");
  }
  if (scaling == Scaling::yarn || scaling == Scaling::longrope)
    rope.attention_factor = inner.number("attention_factor", 0);
  inner.number("original_max_position_embeddings", 0);
  inner.refuse_unknown();
}

// Counted in floating point: sizes that are fine one by one may overflow an integer together.
void check_total(const DecoderSizes& sizes, int64_t head_dim, const std::string& origin) {
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  const double attention =
      number(sizes.dim) * number(head_dim) * 2 * (number(sizes.n_heads) + number(sizes.n_kv_heads));
  const double layer = attention + 3 * number(sizes.dim) * number(sizes.hidden_dim);
  const double total =
      number(sizes.n_layers) * layer + 2 * number(sizes.vocab_size) * number(sizes.dim);
  if (total > kMostParameters)
    throw Error("{}: its sizes make a model of {:.3g} parameters, more than any machine holds",
                origin, total);
}

}  // namespace

PublishedConfig parse_config(std::string_view text, std::string_view origin_view) {
  const std::string origin(origin_view);
  check_json_depth(text, origin);
  json document;
  try {
    document = json::parse(text);
  } catch (const json::exception& error) {
    throw Error("{}: not valid JSON: {}", origin, error.what());
  }
  Fields top(document, origin);
  PublishedConfig config;
  config.model_type = top.text("model_type");
  if (std::find(kModelTypes.begin(), kModelTypes.end(), config.model_type) == kModelTypes.end())
    throw Error("{}: model_type '{}' is not supported; supported: {}", origin, config.model_type,
                fmt::join(kModelTypes, ", "));
  const bool qwen3 = config.model_type == "qwen3";
  if (top.has("architectures")) {
    const json& names = top.raw("architectures");
    const char* expected = qwen3 ? "Qwen3ForCausalLM" : "LlamaForCausalLM";
    if (!names.is_array() || names.empty() || names[0] != expected)
      throw Error("{}: architectures is {}, model_type '{}' needs [\"{}\"]", origin, names.dump(),
                  config.model_type, expected);
  }
  DecoderSizes& sizes = config.sizes;
  sizes.dim = top.integer("hidden_size");
  sizes.n_layers = top.integer("num_hidden_layers", {}, kMostLayers);
  sizes.n_heads = top.integer("num_attention_heads");
  sizes.n_kv_heads = top.integer("num_key_value_heads", sizes.n_heads);
  if (sizes.n_heads % sizes.n_kv_heads != 0)
    throw Error("{}: num_attention_heads ({}) must be a multiple of num_key_value_heads ({})",
                origin, sizes.n_heads, sizes.n_kv_heads);
  if (qwen3) {
    sizes.head_dim = top.integer("head_dim", 128);
  } else if (top.has("head_dim")) {
    sizes.head_dim = top.integer("head_dim");
  } else if (sizes.dim % sizes.n_heads != 0) {
    throw Error(
        "{}: head_dim is absent and hidden_size ({}) is not divisible by num_attention_heads ({})",
        origin, sizes.dim, sizes.n_heads);
  }
  top.raw("head_dim");
  sizes.hidden_dim = top.integer("intermediate_size");
  sizes.vocab_size = top.integer("vocab_size", {}, kLargestVocabulary);
  sizes.norm_eps = top.number("rms_norm_eps", 1e-6);
  if (!(sizes.norm_eps >= 0 && sizes.norm_eps <= 1))
    throw Error("{}: rms_norm_eps must lie in [0, 1], got {}", origin, sizes.norm_eps);
  sizes.tied = top.flag("tie_word_embeddings", false);
  sizes.qk_norm = qwen3;
  sizes.qkv_bias = sizes.o_bias = top.flag("attention_bias", false);
  if (!qwen3) sizes.mlp_bias = top.flag("mlp_bias", false);
  top.only("hidden_act", {"silu"});
  top.only("attention_dropout", {0, 0.0});
  top.only("use_sliding_window", {false});
  top.only("rope_interleaved", {false});  // pairs are (i, i + R/2)
  top.only("is_encoder_decoder", {false});
  top.only("chunk_size_feed_forward", {0});
  top.only("is_decoder", {true, false});  // causal either way
  if (qwen3) {
    top.raw("sliding_window");  // only read together with use_sliding_window
    if (top.has("layer_types")) {
      for (const json& type : top.raw("layer_types")) {
        if (type != "full_attention")
          throw Error("{}: layer_types holds {}, only full_attention is supported", origin,
                      type.dump());
      }
    }
    top.raw("layer_types");
  }
  config.rope.max_position_embeddings =
      top.integer("max_position_embeddings", qwen3 ? 32768 : 2048, kMostPositions);
  read_rope(top, origin, config.rope);
  top.refuse_unknown();
  const int64_t head_dim = sizes.head_dim != 0 ? sizes.head_dim : sizes.dim / sizes.n_heads;
  check_total(sizes, head_dim, origin);
  config.rope.dim = head_dim;
  try {
    nn::check(config.rope.spec());
  } catch (const Error& error) {
    throw Error("{}: {}", origin, error.what());
  }
  return config;
}

PublishedConfig read_config(const std::filesystem::path& file) {
  return parse_config(read_file(file), file.string());
}

nn::Decoder::Config build(const PublishedConfig& config) {
  const nn::Init head = head_init(config.sizes.dim);
  return make_decoder(config.sizes, nn::kHuggingFaceNames,
                      {.embedding = nn::Init::normal(1),
                       .head = head,
                       .qkv = linear_init(),
                       .w1 = linear_init(),
                       .wo = depth_init,
                       .w2 = depth_init,
                       .w3 = depth_init},
                      config.rope);
}

}  // namespace rhea::models::hf
