// Moving the rotary settings between the two places.
#include "rhea/components/checkpoint/config_spelling.h"

#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/base/json.h"

namespace rhea::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFull = "full_attention";
constexpr const char* kSliding = "sliding_attention";

bool has(const Json& config, const char* name) {
  return config.contains(name) && !config[name].is_null();
}

// Value of a field, which is removed; null where it is absent.
Json take(Json& config, const char* name) {
  if (!config.contains(name)) return nullptr;
  Json value = std::move(config[name]);
  config.erase(name);
  return value;
}

std::string_view long_name(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return "bfloat16";
    case DType::f16:
      return "float16";
    case DType::f64:
      return "float64";
    default:
      return "float32";
  }
}

bool is_gpt_neox(const Json& config) { return config.value("model_type", "") == "gpt_neox"; }
const char* theta_field(const Json& config) {
  return is_gpt_neox(config) ? "rotary_emb_base" : "rope_theta";
}
const char* partial_field(const Json& config) {
  return is_gpt_neox(config) ? "rotary_pct" : "partial_rotary_factor";
}

// Families whose layers of the two kinds turn by different angles, and the theta of those with a
// window where a file of version 4 does not say it. Only some of them read it from such a file.
struct LayeredFamily {
  std::string_view model_type;
  double sliding_theta;
  bool reads_sliding_theta;
};
constexpr LayeredFamily kLayered[] = {{"gemma3_text", 1e4, true}, {"olmo3", 5e5, false}};

const LayeredFamily* layered_family(const Json& config) {
  const std::string type = config.value("model_type", "");
  for (const LayeredFamily& family : kLayered)
    if (family.model_type == type) return &family;
  return nullptr;
}

// Whether the class of the model has a scaling where the file has no object of rotary settings.
bool scales_by_default(const Json& config) {
  const std::string type = config.value("model_type", "");
  return type == "apertus" || type == "cwm" || type == "gpt_oss";
}

// Rope of one kind of layer -> what v4 calls rope_scaling: null for plain frequencies.
Json scaling_of(Json rope) {
  rope.erase("rope_theta");
  rope.erase("partial_rotary_factor");
  const std::string type = rope.value("rope_type", "default");
  if (type == "default") return nullptr;
  // Readers of version 4 that are older than the name rope_type look for type; those of long rope
  // refuse any other field.
  if (type == "longrope") {
    rope.erase("rope_type");
    rope.erase("original_max_position_embeddings");
  }
  rope["type"] = type;
  return rope;
}

void to_v4(Json& config, std::string_view origin) {
  config.erase("dtype");
  Json rope = take(config, "rope_parameters");
  if (rope.is_null()) return;
  if (!rope.is_object())
    throw Error("{}: rope_parameters is {}, not an object", origin, rope.dump());
  if (const LayeredFamily* family = layered_family(config)) {
    const Json sliding = rope.value(kSliding, Json::object());
    const Json full = rope.value(kFull, Json::object());
    if (!scaling_of(sliding).is_null())
      throw Error("{}: rope_parameters.{} has a scaling, which version 4 cannot say", origin,
                  kSliding);
    if (sliding.contains("rope_theta")) {
      if (!family->reads_sliding_theta && sliding["rope_theta"] != family->sliding_theta)
        throw Error("{}: rope_parameters.{}.rope_theta is {}, version 4 can only say {}", origin,
                    kSliding, sliding["rope_theta"].dump(), family->sliding_theta);
      config["rope_local_base_freq"] = sliding["rope_theta"];
    }
    rope = full;
  }
  if (rope.contains("rope_theta")) config[theta_field(config)] = rope["rope_theta"];
  if (rope.contains("partial_rotary_factor"))
    config[partial_field(config)] = rope["partial_rotary_factor"];
  if (rope.value("rope_type", "") == "longrope" &&
      rope.contains("original_max_position_embeddings"))
    config["original_max_position_embeddings"] = rope["original_max_position_embeddings"];
  config["rope_scaling"] = scaling_of(std::move(rope));
  if (config["rope_scaling"].is_null() && scales_by_default(config))
    config["rope_scaling"] = {{"rope_type", "default"}};
}

void to_v5(Json& config, std::string_view origin) {
  const bool old =
      has(config, "rope_theta") || has(config, "rope_scaling") || has(config, "rotary_emb_base");
  if (has(config, "rope_parameters")) {
    if (has(config, "rope_scaling"))
      throw Error("{}: rope_parameters and rope_scaling are both given", origin);
    return;
  }
  if (!old) return;
  // Without an object the class of the model has all settings, also where a theta stands beside it.
  if (scales_by_default(config) && !has(config, "rope_scaling")) return;
  const Json theta = take(config, theta_field(config));
  const Json partial = take(config, partial_field(config));
  const Json local = take(config, "rope_local_base_freq");
  Json rope = take(config, "rope_scaling");
  if (rope.is_null()) rope = Json::object();
  if (!rope.is_object()) throw Error("{}: rope_scaling is {}, not an object", origin, rope.dump());
  const Json type = take(rope, "type");
  if (!rope.contains("rope_type")) rope["rope_type"] = type.is_null() ? Json("default") : type;
  if (rope["rope_type"] == "su") rope["rope_type"] = "longrope";  // its first name
  if (!theta.is_null()) rope["rope_theta"] = theta;
  if (!partial.is_null()) rope["partial_rotary_factor"] = partial;
  if (rope["rope_type"] == "longrope" && has(config, "original_max_position_embeddings"))
    rope["original_max_position_embeddings"] = config["original_max_position_embeddings"];
  if (const LayeredFamily* family = layered_family(config)) {
    const Json sliding_theta = local.is_null() ? Json(family->sliding_theta) : local;
    rope = {{kFull, rope}, {kSliding, {{"rope_theta", sliding_theta}, {"rope_type", "default"}}}};
  }
  config["rope_parameters"] = rope;
}

}  // namespace

ConfigSpelling parse_config_spelling(std::string_view text) {
  if (text == "v4") return ConfigSpelling::v4;
  if (text == "v5") return ConfigSpelling::v5;
  throw Error("the spelling of config.json is '{}', expected v4 or v5", text);
}

std::string spell_config(std::string_view text, std::string_view origin, ConfigSpelling spelling,
                         DType dtype) {
  Json config = parse_ordered_json(text, origin);
  if (!config.is_object()) throw Error("{} is not a JSON object", origin);
  try {
    if (spelling == ConfigSpelling::v4)
      to_v4(config, origin);
    else
      to_v5(config, origin);
  } catch (const Json::exception& error) {  // a field of another type than it should have
    throw Error("{}: {}", origin, json_reason(error.what()));
  }
  if (spelling == ConfigSpelling::v5) config["dtype"] = long_name(dtype);
  config["torch_dtype"] = long_name(dtype);
  config.erase("quantization_config");
  return config.dump(2) + "\n";
}

}  // namespace rhea::checkpoint
