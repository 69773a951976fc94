// Which model families there are, and how a run's model is made.
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/config/trainer_config.h"
#include "rhea/models/key_rules.h"
#include "rhea/nn/decoder.h"

namespace rhea::models {

namespace hf {
struct PublishedConfig;
}

// A new family: a row in registry.cpp.
struct Family {
  std::string_view name;
  // Names in published files; empty: the model has them already.
  std::span<const KeyRule> key_rules;
  // model_type of the config.json that it takes sizes from; empty: every supported one.
  std::string_view model_type;
  nn::Decoder::Config (*build)(const hf::PublishedConfig& config);
};

// Throws Error listing the families there are.
const Family& find_family(std::string_view name);

// A flavor that takes its sizes from config.json: the spec is completed when hf_assets_path (or
// hf_model) is known.
inline constexpr std::string_view kFromConfig = "from_config";
ModelSpec deferred_spec(std::string_view family);

// Fills a deferred spec from the run's config.json and applies the spec's converters, each once.
// Throws Error naming file and field, or what a converter says.
void complete_spec(TrainerConfig& config);

// The run's config.json with hf_overrides in it.
struct RunConfigFile {
  std::filesystem::path file;  // of hf_model when that is a folder, else of hf_assets_path
  std::string json;
  std::vector<std::string> replaced;  // what hf_overrides changed, for the log
};
// Throws Error when the file is not there or cannot be read.
RunConfigFile read_run_config(const TrainerConfig& config);

// The decoder of a complete spec.
const nn::Decoder::Config& decoder(const ModelSpec& spec);

}  // namespace rhea::models
