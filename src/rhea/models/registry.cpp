// The list of families.
#include "rhea/models/registry.h"

#include <array>
#include <filesystem>

#include "rhea/base/error.h"
#include "rhea/models/flavor.h"
#include "rhea/models/hf/config_json.h"
#include "rhea/models/llama3/llama3.h"
#include "rhea/models/qwen3/qwen3.h"

namespace rhea::models {
namespace {

constexpr std::string_view kHuggingFace = "transformers_modeling_backend";

}  // namespace

std::filesystem::path config_file(const TrainerConfig& config) {
  namespace fs = std::filesystem;
  if (!config.hf_model.empty() && fs::is_directory(config.hf_model))
    return fs::path(config.hf_model) / "config.json";
  return fs::path(config.hf_assets_path) / "config.json";
}

const Family& find_family(std::string_view name) {
  static const std::array kFamilies = {Family{"llama3", llama3::key_rules()},
                                       Family{"qwen3", qwen3::key_rules()},
                                       Family{kHuggingFace, {}}};
  for (const Family& family : kFamilies) {
    if (family.name == name) return family;
  }
  throw Error("model family '{}' is unknown; known: llama3, qwen3, {}", name, kHuggingFace);
}

ModelSpec deferred_spec(std::string_view family) {
  ModelSpec spec;
  spec.name = find_family(family).name;
  spec.flavor = kFromConfig;
  return spec;
}

void complete_spec(TrainerConfig& config) {
  ModelSpec& spec = config.model_spec;
  if (spec.flavor != kFromConfig || spec.model) return;
  const auto file = config_file(config);
  if (!std::filesystem::exists(file))
    throw Error("{} does not exist; set hf_assets_path{} to a folder with a config.json",
                file.string(), spec.name == kHuggingFace ? " or hf_model" : "");
  const auto published = hf::read_config(file);
  const std::string wanted = spec.name == "llama3" ? "llama" : spec.name;
  if (spec.name == kHuggingFace) {
    spec = make_spec(spec.name, kFromConfig, hf::build(published), "flex");
  } else if (published.model_type != wanted) {
    throw Error("{}: model_type is '{}', the native {} needs '{}'", file.string(),
                published.model_type, spec.name, wanted);
  } else if (spec.name == "llama3") {
    spec =
        make_spec(spec.name, kFromConfig, llama3::build(published.sizes, published.rope), "flex");
  } else {
    spec = make_spec(spec.name, kFromConfig, qwen3::build(published.sizes, published.rope), "flex");
  }
}

const nn::Decoder::Config& decoder(const ModelSpec& spec) {
  const auto* model = spec.model.as<nn::Decoder::Config>();
  if (model == nullptr) throw Error("model_spec: {} {} holds no decoder", spec.name, spec.flavor);
  return *model;
}

}  // namespace rhea::models
