// Checks of checkpoint options.
#include "rhea/components/checkpoint/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

namespace rhea::checkpoint {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool has(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

void check_initial_load(const CheckpointConfig& config, config::Report& report) {
  if (const auto& path = config.initial_load_path) {
    if (!std::filesystem::path(*path).is_absolute())
      report.add("checkpoint.initial_load_path", *path,
                 fmt::format("initial_load_path must be an absolute path to a folder: {}", *path));
    else if (config.enable && !std::filesystem::is_directory(*path))
      report.add("checkpoint.initial_load_path", *path,
                 "initial_load_path must be a directory that exists");
  }
  if (config.initial_load_in_hf && !config.initial_load_model_only)
    report.add("checkpoint.initial_load_in_hf", "true",
               "initial_load_in_hf requires initial_load_model_only.");
  if (config.initial_load_in_hf_quantized &&
      (!config.initial_load_in_hf || !config.initial_load_path))
    report.add("checkpoint.initial_load_in_hf_quantized", "true",
               "needs initial_load_in_hf and an initial_load_path");
}

void check_exclusions(const CheckpointConfig& config, config::Report& report) {
  constexpr std::array<std::string_view, 4> kKnown = {"optimizer", "lr_scheduler", "dataloader",
                                                      "train_state"};
  const auto& list = config.exclude_from_loading;
  const std::string path = "checkpoint.exclude_from_loading";
  for (const std::string& item : list) {
    if (item == "model")
      report.add(path, item,
                 "the model cannot be excluded: nothing would be loaded that a run starts from");
    else if (std::find(kKnown.begin(), kKnown.end(), item) == kKnown.end())
      report.add(path, item, fmt::format("unknown part; known: {}", fmt::join(kKnown, ", ")));
  }
  if (has(list, "optimizer") && !has(list, "lr_scheduler"))
    report.add(path, "optimizer",
               "also needs lr_scheduler: an old schedule must not run on a fresh optimizer");
}

}  // namespace

bool is_async(const CheckpointConfig& config) { return lower(config.async_mode) != "disabled"; }

void check_options(const CheckpointConfig& config, int64_t world_size, config::Report& report) {
  if (std::all_of(config.folder.begin(), config.folder.end(),
                  [](unsigned char c) { return std::isspace(c) != 0; }))
    report.add("checkpoint.folder", config.folder, "The 'folder' field cannot be empty.");
  if (config.keep_latest_k == 1)
    report.add("checkpoint.keep_latest_k", "1",
               "We need to maintain at least 2 checkpoint replicas, as the last one may be in the "
               "process of being saved; use 0 to keep all");
  if (config.keep_latest_k < 0)
    report.add("checkpoint.keep_latest_k", fmt::format("{}", config.keep_latest_k),
               "must not be negative; 0 keeps all");
  check_initial_load(config, report);
  if (config.last_save_in_hf && !config.last_save_model_only)
    report.add("checkpoint.last_save_in_hf", "true",
               "last_save_in_hf requires last_save_model_only=True.");
  check_exclusions(config, report);
  const std::string mode = lower(config.async_mode);
  if (mode != "disabled" && mode != "async" && mode != "async_with_pinned_mem")
    report.add("checkpoint.async_mode", config.async_mode,
               fmt::format("Invalid async_mode: {}; it is disabled, async or async_with_pinned_mem",
                           config.async_mode));
  if (config.create_seed_checkpoint && !config.enable)
    report.add("checkpoint.create_seed_checkpoint", "true", "needs checkpoint.enable");
  if (config.create_seed_checkpoint && world_size != 1)
    report.add("checkpoint.create_seed_checkpoint", "true",
               fmt::format("needs one process without parallelism, this run has {}", world_size));
}

}  // namespace rhea::checkpoint
