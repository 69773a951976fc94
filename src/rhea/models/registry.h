// Which model families there are, and how a run's model is made.
#pragma once
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/base/named_table.h"
#include "rhea/config/trainer_config.h"
#include "rhea/models/key_rules.h"
#include "rhea/nn/decoder.h"

namespace rhea::models {

namespace hf {
struct PublishedConfig;
}

// A kind of model: what ModelSpec::name says.
struct Family {
  std::string name;  // in ModelSpec::name
  // Names in published files; empty: the model has them already. The table must outlive the family.
  std::span<const KeyRule> key_rules = {};
  // Those that `build` takes; empty: every supported one.
  std::vector<std::string> model_types = {};
  // The model in the sizes of a config.json; no function: models of this family are made in code
  // only.
  std::function<nn::Decoder::Config(const hf::PublishedConfig& config)> build = {};
  // The config.json of a run's model, which checkpoints and exports hold; no function: there is
  // none, and programs that know a model by that file do not read them.
  std::function<std::string(const TrainerConfig& config)> config_json = {};
};

// llama3, qwen3, transformers_modeling_backend and what modules add.
NamedTable<Family>& families();

// Throws Error listing the families there are.
const Family& find_family(std::string_view name);

// The model of a family in published sizes; `file` is where they are from, for messages. Throws
// Error where the family takes none, or another model_type.
nn::Decoder::Config build_published(std::string_view family, const hf::PublishedConfig& published,
                                    const std::string& file);

// A flavor that takes its sizes from config.json: the spec is completed when hf_assets_path (or
// hf_model) is known.
inline constexpr std::string_view kFromConfig = "from_config";
// The spec of that flavor.
ModelSpec deferred_spec(std::string_view family);

// Fills a deferred spec from the run's config.json and applies the spec's converters, each once.
// Throws Error naming file and field, or what a converter says.
void complete_spec(TrainerConfig& config);

// The run's config.json with hf_overrides in it.
struct RunConfigFile {
  std::filesystem::path file;         // of hf_model when that is a folder, else of hf_assets_path
  std::string json;                   // its text
  std::vector<std::string> replaced;  // what hf_overrides changed, for the log
};
// Throws Error when the file is not there or cannot be read.
RunConfigFile read_run_config(const TrainerConfig& config);

// The decoder of a complete spec.
const nn::Decoder::Config& decoder(const ModelSpec& spec);

}  // namespace rhea::models
