// The list of families.
#include "rhea/models/registry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "rhea/base/error.h"
#include "rhea/base/mapped_file.h"
#include "rhea/models/converters/convert.h"
#include "rhea/models/flavor.h"
#include "rhea/models/hf/build.h"
#include "rhea/models/hf/config_json.h"
#include "rhea/models/hf/override_config.h"
#include "rhea/models/llama3/llama3.h"
#include "rhea/models/qwen3/qwen3.h"

namespace rhea::models {
namespace {

constexpr std::string_view kHuggingFace = "transformers_modeling_backend";

// A native model in the sizes of a published one. Throws Error where these do not describe it: a
// window, another activation, partial rotation.
using NativeBuild = nn::Decoder::Config(const DecoderSizes&, const nn::RopeFields&);
nn::Decoder::Config native(NativeBuild* build, const nn::Decoder::Config& published) {
  DecoderSizes sizes = sizes_of(published);
  const nn::RopeFields& rope = rope_of(published);
  auto found = hf::tree_differences(hf::llama_decoder(sizes, rope), published);
  if (rope.dim != sizes.head_dim)
    found.push_back(fmt::format("{} of {} dims of a head rotate", rope.dim, sizes.head_dim));
  if (!found.empty())
    throw Error(
        "the native model has no form for this; use the config "
        "transformers_modeling_backend_full:\n    {}",
        fmt::join(found, "\n    "));
  sizes.fuse_qkv = true;
  if (sizes.experts.num_experts > 0) sizes.experts.load_balance_coeff = kLoadBalanceCoeff;
  return build(sizes, rope);
}

Family native_family(std::string_view name, std::span<const KeyRule> rules,
                     std::vector<std::string> model_types, NativeBuild* build) {
  return {std::string(name), rules, std::move(model_types),
          [build](const hf::PublishedConfig& config) { return native(build, config.decoder); },
          [](const TrainerConfig& config) { return hf::write_config(decoder(config.model_spec)); }};
}

}  // namespace

NamedTable<Family>& families() {
  static NamedTable<Family> table = [] {
    NamedTable<Family> made("model family");
    made.add(native_family("llama3", llama3::key_rules(), {"llama"}, llama3::build), kInTree);
    made.add(native_family("qwen3", qwen3::key_rules(), {"qwen3", "qwen3_moe"}, qwen3::build),
             kInTree);
    made.add({std::string(kHuggingFace),
              {},
              {},
              [](const hf::PublishedConfig& config) { return config.decoder; },
              [](const TrainerConfig& config) { return read_run_config(config).json; }},
             kInTree);
    return made;
  }();
  return table;
}

RunConfigFile read_run_config(const TrainerConfig& config) {
  namespace fs = std::filesystem;
  const bool is_folder = !config.hf_model.empty() && fs::is_directory(config.hf_model);
  RunConfigFile found;
  found.file = fs::path(is_folder ? config.hf_model : config.hf_assets_path) / "config.json";
  if (!fs::exists(found.file))
    throw Error("{} does not exist; set hf_assets_path or hf_model to a folder with a config.json",
                found.file.string());
  auto made = hf::override_config(read_file(found.file), found.file.string(), config.hf_overrides);
  found.json = std::move(made.json);
  found.replaced = std::move(made.replaced);
  return found;
}

const Family& find_family(std::string_view name) { return families().at(name); }

nn::Decoder::Config build_published(std::string_view name, const hf::PublishedConfig& published,
                                    const std::string& file) {
  const Family& family = find_family(name);
  if (!family.build)
    throw Error("models of the family {} are made in code only; it takes no sizes from {}", name,
                file);
  const auto& types = family.model_types;
  if (!types.empty() && std::ranges::find(types, published.model_type) == types.end())
    throw Error("{}: model_type is '{}', the native {} needs '{}'", file, published.model_type,
                name, fmt::join(types, "' or '"));
  return family.build(published);
}

ModelSpec deferred_spec(std::string_view family) {
  ModelSpec spec;
  spec.name = find_family(family).name;
  spec.flavor = kFromConfig;
  return spec;
}

namespace {

void read_structure(TrainerConfig& config) {
  ModelSpec& spec = config.model_spec;
  if (spec.flavor != kFromConfig || spec.model) return;
  const RunConfigFile run = read_run_config(config);
  const auto published = hf::parse_config(run.json, run.file.string());
  const bool whole_row = config.hf_overrides.attn_mask_type == "causal";
  spec.model =
      make_spec(spec.name, kFromConfig, build_published(spec.name, published, run.file.string()),
                whole_row ? "sdpa" : "flex")
          .model;
}

}  // namespace

void complete_spec(TrainerConfig& config) {
  read_structure(config);
  apply_converters(config.model_spec);
}

const nn::Decoder::Config& decoder(const ModelSpec& spec) {
  const auto* model = spec.model.as<nn::Decoder::Config>();
  if (model == nullptr) throw Error("model_spec: {} {} holds no decoder", spec.name, spec.flavor);
  return *model;
}

}  // namespace rhea::models
