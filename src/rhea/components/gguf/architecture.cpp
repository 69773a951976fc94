// The table of architectures and the fields of their config.json.
#include "rhea/components/gguf/architecture.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/components/gguf/published.h"

namespace rhea::gguf {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kCommonParts = {
    PartName{"token_embd", "model.embed_tokens"},
    PartName{"output_norm", "model.norm"},
    PartName{"output", "lm_head"},
    PartName{"attn_norm", "input_layernorm"},
    PartName{"attn_q", "self_attn.q_proj"},
    PartName{"attn_k", "self_attn.k_proj"},
    PartName{"attn_v", "self_attn.v_proj"},
    PartName{"attn_output", "self_attn.o_proj"},
    PartName{"attn_q_norm", "self_attn.q_norm"},
    PartName{"attn_k_norm", "self_attn.k_norm"},
    PartName{"ffn_norm", "post_attention_layernorm"},
    PartName{"ffn_gate", "mlp.gate_proj"},
    PartName{"ffn_up", "mlp.up_proj"},
    PartName{"ffn_down", "mlp.down_proj"},
};

constexpr std::array kMixtralParts = {PartName{"ffn_gate_inp", "block_sparse_moe.gate"}};
constexpr std::array kQwenMoeParts = {
    PartName{"ffn_gate_inp", "mlp.gate"},
    PartName{"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
    PartName{"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
    PartName{"ffn_up_shexp", "mlp.shared_expert.up_proj"},
    PartName{"ffn_down_shexp", "mlp.shared_expert.down_proj"},
};
constexpr std::array kGemma2Parts = {
    PartName{"post_attention_norm", "post_attention_layernorm"},
    PartName{"ffn_norm", "pre_feedforward_layernorm"},
    PartName{"post_ffw_norm", "post_feedforward_layernorm"},
};
constexpr std::array kOlmo2Parts = {
    PartName{"post_attention_norm", "post_attention_layernorm"},
    PartName{"post_ffw_norm", "post_feedforward_layernorm"},
};
constexpr std::array kPhi3Parts = {
    PartName{"attn_qkv", "self_attn.qkv_proj"},
    PartName{"ffn_up", "mlp.gate_up_proj"},
};

// The file keeps f32; the shortest decimal that gives it is what was written in the first place.
double shortest(double value) {
  const std::string text = fmt::format("{}", static_cast<float>(value));
  double parsed = value;
  std::from_chars(text.data(), text.data() + text.size(), parsed);
  return parsed;
}

constexpr std::string_view kLongFactors = "rope_factors_long.weight";

// --- fields that only some have

void attention_biases(ArchitectureKeys& keys, Json& config) {
  const bool bias = keys.file().find("blk.0.attn_q.bias") != nullptr;
  config["attention_bias"] = bias;
  config["mlp_bias"] = keys.file().find("blk.0.ffn_up.bias") != nullptr;
}

void llama_fields(ArchitectureKeys& keys, Json& config) { attention_biases(keys, config); }

void mixtral_fields(ArchitectureKeys& keys, Json& config) {
  config["num_local_experts"] = keys.integer("expert_count");
  config["num_experts_per_tok"] = keys.integer("expert_used_count");
  config["sliding_window"] = nullptr;
}

void qwen2_fields(ArchitectureKeys&, Json& config) { config["use_sliding_window"] = false; }

void qwen3_fields(ArchitectureKeys& keys, Json& config) {
  config["attention_bias"] = keys.file().find("blk.0.attn_q.bias") != nullptr;
}

// llama.cpp divides the chosen weights by their sum for qwen3moe and does not for qwen2moe.
void qwen_moe_fields(ArchitectureKeys& keys, Json& config, bool norm) {
  config["num_experts"] = keys.integer("expert_count");
  config["num_experts_per_tok"] = keys.integer("expert_used_count");
  config["moe_intermediate_size"] = keys.integer("expert_feed_forward_length");
  config["decoder_sparse_step"] = 1;
  config["norm_topk_prob"] = norm;
}
void qwen2_moe_fields(ArchitectureKeys& keys, Json& config) {
  qwen2_fields(keys, config);
  qwen_moe_fields(keys, config, false);
  config["shared_expert_intermediate_size"] = keys.integer("expert_shared_feed_forward_length");
}
void qwen3_moe_fields(ArchitectureKeys& keys, Json& config) {
  qwen3_fields(keys, config);
  qwen_moe_fields(keys, config, true);
}

void gemma_fields(ArchitectureKeys&, Json& config) {
  config["hidden_act"] = "gelu_pytorch_tanh";
  config["hidden_activation"] = "gelu_pytorch_tanh";
}

// The file does not say what the scores are divided by. Of the published sizes only the largest of
// each generation differs from the head size.
void query_scale(Json& config, int64_t largest_num_layers) {
  const bool largest = config["num_hidden_layers"] == largest_num_layers;
  config["query_pre_attn_scalar"] =
      largest ? config["hidden_size"].get<int64_t>() / config["num_attention_heads"].get<int64_t>()
              : config["head_dim"].get<int64_t>();
}

void gemma2_fields(ArchitectureKeys& keys, Json& config) {
  gemma_fields(keys, config);
  config.erase("hidden_act");
  config["sliding_window"] = keys.integer("attention.sliding_window", 4096);
  config["attn_logit_softcapping"] = shortest(keys.number("attn_logit_softcapping", 50));
  config["final_logit_softcapping"] = shortest(keys.number("final_logit_softcapping", 30));
  query_scale(config, 46);
}

void gemma3_fields(ArchitectureKeys& keys, Json& config) {
  gemma_fields(keys, config);
  config.erase("hidden_act");
  config["sliding_window"] = keys.integer("attention.sliding_window");
  constexpr int64_t kPattern = 6;  // five sliding layers, then a full one
  const int64_t pattern = keys.integer("attention.sliding_window_pattern", kPattern);
  if (pattern != kPattern)
    throw Error("{}: gemma3.attention.sliding_window_pattern is {}, {} is supported",
                keys.file().path().string(), pattern, kPattern);
  Json types = Json::array();
  const auto num_layers = config["num_hidden_layers"].get<int64_t>();
  for (int64_t i = 0; i < num_layers; ++i)
    types.push_back((i + 1) % pattern == 0 ? "full_attention" : "sliding_attention");
  config["layer_types"] = types;
  config["rope_parameters"] = {{"full_attention", config["rope_parameters"]},
                               {"sliding_attention",
                                {{"rope_theta", shortest(keys.number("rope.freq_base_swa", 10000))},
                                 {"rope_type", "default"}}}};
  query_scale(config, 62);
}

std::vector<float> stored_floats(const File& file, const Tensor& tensor) {
  if (tensor.type->dequantize == nullptr)
    throw Error("{}: {} is {}, which is not read", file.path().string(), tensor.name,
                tensor.type->name);
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  dequantize(*tensor.type, tensor.blocks, values);
  return values;
}

// Long rope: the divisors of the frequencies of short and of long texts are tensors. The factor of
// the attention follows from the two lengths, in the file as in Transformers.
void read_long_rope(ArchitectureKeys& keys, const Json& config, int64_t num_turned, Json& rope) {
  const File& file = keys.file();
  rope["rope_type"] = "longrope";
  for (const auto& [field, name] : {std::pair("short_factor", "rope_factors_short.weight"),
                                    std::pair("long_factor", kLongFactors.data())}) {
    const Tensor* factors = file.find(name);
    if (factors == nullptr || factors->num_elements() * 2 != num_turned)
      throw Error("{}: long rope needs {} with {} elements, half of the dims that turn; found {}",
                  file.path().string(), name, num_turned / 2,
                  factors == nullptr ? "no such tensor"
                                     : fmt::format("{} elements", factors->num_elements()));
    Json list = Json::array();
    for (const float value : stored_floats(file, *factors))
      list.push_back(shortest(static_cast<double>(value)));
    rope[field] = list;
  }
  const auto original = config["original_max_position_embeddings"].get<double>();
  const double factor = config["max_position_embeddings"].get<double>() / original;
  const double published = factor > 1 ? std::sqrt(1 + std::log(factor) / std::log(original)) : 1;
  const double stored = keys.number("rope.scaling.attn_factor", published);
  if (!(std::abs(stored - published) <= 1e-5 * published))
    rope["attention_factor"] = shortest(stored);
}

void phi3_fields(ArchitectureKeys& keys, Json& config) {
  const int64_t window = keys.integer("attention.sliding_window", 0);
  config["sliding_window"] = window == 0 ? Json() : Json(window);
  config["original_max_position_embeddings"] =
      keys.integer("rope.scaling.original_context_length", config["max_position_embeddings"]);
  // These files say how many dims of a head turn and leave its size to be computed.
  const int64_t num_turned = keys.integer("rope.dimension_count", config["head_dim"]);
  const int64_t head_dim =
      config["hidden_size"].get<int64_t>() / config["num_attention_heads"].get<int64_t>();
  config["head_dim"] = head_dim;
  Json& rope = config["rope_parameters"];
  if (num_turned != head_dim) {
    const double share = static_cast<double>(num_turned) / static_cast<double>(head_dim);
    if (num_turned > head_dim ||
        static_cast<int64_t>(static_cast<double>(head_dim) * share) != num_turned)
      throw Error("{}: phi3.rope.dimension_count is {}, a head has {} dims",
                  keys.file().path().string(), num_turned, head_dim);
    rope["partial_rotary_factor"] = share;
  }
  if (keys.file().find(kLongFactors) != nullptr) read_long_rope(keys, config, num_turned, rope);
}

void granite_fields(ArchitectureKeys& keys, Json& config) {
  attention_biases(keys, config);
  config["attention_multiplier"] = shortest(keys.number("attention.scale"));
  config["embedding_multiplier"] = shortest(keys.number("embedding_scale"));
  config["residual_multiplier"] = shortest(keys.number("residual_scale"));
  config["logits_scaling"] = shortest(keys.number("logit_scale"));
}

void olmo2_fields(ArchitectureKeys&, Json& config) { config["attention_bias"] = false; }

const std::array kArchitectures = {
    Architecture{"llama", "llama", "LlamaForCausalLM", true, false, {}, "", llama_fields},
    Architecture{"llama", "mixtral", "MixtralForCausalLM", true, false, kMixtralParts,
                 "block_sparse_moe.experts.{}.", mixtral_fields},
    Architecture{"qwen2", "qwen2", "Qwen2ForCausalLM", false, false, {}, "", qwen2_fields},
    Architecture{"qwen2moe", "qwen2_moe", "Qwen2MoeForCausalLM", false, false, kQwenMoeParts,
                 "mlp.experts.{}.", qwen2_moe_fields},
    Architecture{"qwen3", "qwen3", "Qwen3ForCausalLM", false, false, {}, "", qwen3_fields},
    Architecture{"qwen3moe", "qwen3_moe", "Qwen3MoeForCausalLM", false, false, kQwenMoeParts,
                 "mlp.experts.{}.", qwen3_moe_fields},
    Architecture{"gemma", "gemma", "GemmaForCausalLM", false, true, {}, "", gemma_fields},
    Architecture{"gemma2", "gemma2", "Gemma2ForCausalLM", false, true, kGemma2Parts, "",
                 gemma2_fields},
    Architecture{"gemma3", "gemma3_text", "Gemma3ForCausalLM", false, true, kGemma2Parts, "",
                 gemma3_fields},
    Architecture{"phi3", "phi3", "Phi3ForCausalLM", false, false, kPhi3Parts, "", phi3_fields},
    Architecture{"granite", "granite", "GraniteForCausalLM", true, false, {}, "", granite_fields},
    Architecture{"olmo2", "olmo2", "Olmo2ForCausalLM", false, false, kOlmo2Parts, "", olmo2_fields},
};

// --- rotary embedding

// Llama 3 files hold the divisors of the frequencies instead of the numbers they come from; all
// published ones come from these.
Json llama3_rope(ArchitectureKeys& keys, const Tensor& factors, double theta, int64_t head_dim) {
  const std::vector<float> stored = stored_floats(keys.file(), factors);
  constexpr double kLow = 1, kHigh = 4, kOriginal = 8192, kPi = 3.14159265358979323846;
  const double factor = stored.empty() ? 0 : static_cast<double>(*std::ranges::max_element(stored));
  bool matches = static_cast<int64_t>(stored.size()) * 2 == head_dim && factor >= 1;
  for (size_t i = 0; matches && i < stored.size(); ++i) {
    const double wavelength =
        2 * kPi * std::pow(theta, 2 * static_cast<double>(i) / static_cast<double>(head_dim));
    const double smooth = std::clamp((kOriginal / wavelength - kLow) / (kHigh - kLow), 0.0, 1.0);
    const double expected = 1 / ((1 - smooth) / factor + smooth);
    matches = std::abs(static_cast<double>(stored[i]) - expected) <= 1e-4 * expected;
  }
  if (!matches)
    throw Error(
        "{}: the factors of rope_freqs.weight are not those of Llama 3's scaling (low 1, "
        "high 4, original context 8192); other ones are not supported",
        keys.file().path().string());
  return {{"rope_theta", theta},
          {"rope_type", "llama3"},
          {"factor", factor},
          {"low_freq_factor", kLow},
          {"high_freq_factor", kHigh},
          {"original_max_position_embeddings", static_cast<int64_t>(kOriginal)}};
}

Json rope_of(ArchitectureKeys& keys, const Architecture& architecture, int64_t head_dim,
             int64_t context) {
  const double theta = shortest(keys.number("rope.freq_base", 10000));
  const std::string type = keys.text("rope.scaling.type", "none");
  if (const Tensor* factors = keys.file().find("rope_freqs.weight"))
    return llama3_rope(keys, *factors, theta, head_dim);
  const bool long_rope = keys.file().find(kLongFactors) != nullptr;
  if (long_rope && architecture.name != "phi3")
    throw Error("{}: long rope ({}) is supported for phi3, not for {}", keys.file().path().string(),
                kLongFactors, architecture.name);
  const bool plain = long_rope || type == "none";  // long rope: see phi3_fields
  Json rope = {{"rope_theta", theta}, {"rope_type", plain ? "default" : type}};
  if (plain) return rope;
  if (type != "linear" && type != "yarn")
    throw Error("{}: rope.scaling.type '{}' is not supported; supported: none, linear, yarn",
                keys.file().path().string(), type);
  rope["factor"] = shortest(keys.number("rope.scaling.factor"));
  if (type == "yarn")
    rope["original_max_position_embeddings"] =
        keys.integer("rope.scaling.original_context_length", context);
  if (keys.has("rope.scaling.attn_factor"))
    rope["attention_factor"] = shortest(keys.number("rope.scaling.attn_factor"));
  return rope;
}

void special_ids(const File& file, Json& config) {
  for (const auto& [key, field] : {std::pair("tokenizer.ggml.bos_token_id", "bos_token_id"),
                                   std::pair("tokenizer.ggml.eos_token_id", "eos_token_id"),
                                   std::pair("tokenizer.ggml.padding_token_id", "pad_token_id")})
    config[field] = file.has(key) ? Json(file.integer(key)) : Json();
}

}  // namespace

ArchitectureKeys::ArchitectureKeys(const File& file)
    : file_(file), prefix_(file.text("general.architecture") + ".") {}

int64_t ArchitectureKeys::integer(std::string_view name) {
  ignore(name);
  return file_.integer(full(name));
}
int64_t ArchitectureKeys::integer(std::string_view name, int64_t fallback) {
  ignore(name);
  return file_.integer(full(name), fallback);
}
double ArchitectureKeys::number(std::string_view name) {
  ignore(name);
  return file_.number(full(name));
}
double ArchitectureKeys::number(std::string_view name, double fallback) {
  ignore(name);
  return file_.number(full(name), fallback);
}
std::string ArchitectureKeys::text(std::string_view name, const std::string& fallback) {
  ignore(name);
  return file_.text(full(name), fallback);
}

void ArchitectureKeys::refuse_unread() const {
  std::vector<std::string> unread;
  for (const Field& field : file_.fields())
    if (field.key.starts_with(prefix_) && !used_.contains(field.key)) unread.push_back(field.key);
  if (!unread.empty())
    throw Error("{}: metadata that is not understood and may change the computation: {}",
                file_.path().string(), fmt::join(unread, ", "));
}

std::string supported_architectures() {
  std::string list;
  for (const Architecture& row : kArchitectures)
    list += fmt::format("{}{}", list.empty() ? "" : ", ", row.model_type);
  return list;
}

const Architecture& architecture_of(const File& file) {
  const std::string name = file.text("general.architecture");
  const bool experts = file.integer(name + ".expert_count", 0) > 0;
  for (const Architecture& row : kArchitectures)
    if (row.name == name && row.experts.empty() != experts) return row;
  throw Error("{}: the architecture '{}'{} is not supported in GGUF files; supported: {}",
              file.path().string(), name, experts ? " with experts" : "",
              supported_architectures());
}

Json config_of(const File& file, const Architecture& architecture) {
  ArchitectureKeys keys(file);
  const Tensor* embedding = file.find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2)
    throw Error("{}: there is no token_embd.weight of two dimensions", file.path().string());
  const int64_t hidden = keys.integer("embedding_length");
  const int64_t heads = keys.integer("attention.head_count");
  const int64_t num_layers = keys.integer("block_count");
  // Every layer has tensors; a larger number is damage.
  if (heads < 1 || hidden < heads || num_layers < 1 ||
      num_layers > static_cast<int64_t>(file.tensors().size()))
    throw Error("{}: embedding_length {}, attention.head_count {} and block_count {} make no model",
                file.path().string(), hidden, heads, num_layers);
  const int64_t head_dim =
      keys.integer("attention.key_length", keys.integer("rope.dimension_count", hidden / heads));
  if (head_dim < 1) throw Error("{}: heads of size {}", file.path().string(), head_dim);
  if (keys.integer("attention.value_length", head_dim) != head_dim ||
      keys.integer("rope.dimension_count", head_dim) != head_dim)
    throw Error("{}: heads of {} with values of {} and {} rotated dimensions are not supported",
                file.path().string(), head_dim, keys.integer("attention.value_length", head_dim),
                keys.integer("rope.dimension_count", head_dim));
  const int64_t context = keys.integer("context_length");
  Json config = {
      {"architectures", Json::array({architecture.class_name})},
      {"model_type", architecture.model_type},
      {"attention_dropout", 0.0},
      {"head_dim", head_dim},
      {"hidden_act", "silu"},
      {"hidden_size", hidden},
      {"intermediate_size", keys.integer("feed_forward_length")},
      {"max_position_embeddings", context},
      {"num_attention_heads", heads},
      {"num_hidden_layers", num_layers},
      {"num_key_value_heads", keys.integer("attention.head_count_kv", heads)},
      {"rms_norm_eps", shortest(keys.number("attention.layer_norm_rms_epsilon"))},
      {"rope_parameters", rope_of(keys, architecture, head_dim, context)},
      {"tie_word_embeddings", file.find("output.weight") == nullptr},
      {"dtype", "float32"},
      {"use_cache", true},
      {"vocab_size", embedding->shape[0]},
  };
  special_ids(file, config);
  if (architecture.fields != nullptr) architecture.fields(keys, config);
  // Sizes that the tensors say again, and a note of how the model was scaled.
  for (const char* name : {"vocab_size", "rope.scaling.finetuned", "attention.causal",
                           "expert_count", "expert_used_count"})
    keys.ignore(name);
  keys.refuse_unread();
  return config;
}

std::string published_name(const Architecture& architecture, std::string_view gguf_name) {
  std::string layer;
  std::string_view rest = gguf_name;
  if (rest.starts_with("blk.")) {
    rest.remove_prefix(4);
    const size_t dot = rest.find('.');
    if (dot == 0 || dot == std::string_view::npos ||
        rest.substr(0, dot).find_first_not_of("0123456789") != std::string_view::npos)
      return "";
    layer = fmt::format("model.layers.{}.", rest.substr(0, dot));
    rest.remove_prefix(dot + 1);
  }
  const size_t dot = rest.rfind('.');
  if (dot == std::string_view::npos) return "";
  const std::string_view part = rest.substr(0, dot), suffix = rest.substr(dot);
  if (suffix != ".weight" && suffix != ".bias") return "";
  const auto find = [&](std::span<const PartName> parts) -> std::string {
    for (const PartName& name : parts) {
      const bool outside = name.hf.starts_with("model.") || name.hf == "lm_head";
      if (name.gguf == part && outside == layer.empty())
        return fmt::format("{}{}{}", layer, name.hf, suffix);
    }
    return "";
  };
  const std::string own = find(architecture.parts);
  return own.empty() ? find(kCommonParts) : own;
}

}  // namespace rhea::gguf
