// Rules of what surrounds the step: checkpoint, dataloader, validator, metrics, profiler, comm,
// debug.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "rhea/base/text.h"
#include "rhea/config/rules.h"

namespace rhea::config {
namespace {

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

bool blank(const std::string& text) {
  return std::ranges::all_of(text, [](unsigned char c) { return std::isspace(c) != 0; });
}

void check_initial_load(const CheckpointConfig& c, const std::string& hf_assets_path,
                        const WorldFacts& world, Report& report) {
  const bool looks = c.enable && world.reads_files;
  if (c.initial_load_path) {
    const std::filesystem::path path(*c.initial_load_path);
    if (!path.is_absolute())
      report.add("checkpoint.initial_load_path", *c.initial_load_path,
                 fmt::format("initial_load_path must be an absolute path (it is the same from "
                             "every working folder): {}",
                             *c.initial_load_path));
    else if (looks && !std::filesystem::is_directory(path))
      report.add("checkpoint.initial_load_path", *c.initial_load_path, "is not a directory");
  }
  if (c.initial_load_in_hf && !c.initial_load_model_only)
    report.add("checkpoint.initial_load_in_hf", "true",
               "initial_load_in_hf requires initial_load_model_only.");
  if (c.initial_load_in_hf_quantized && !c.initial_load_in_hf)
    report.add("checkpoint.initial_load_in_hf_quantized", "true",
               "initial_load_in_hf_quantized requires initial_load_in_hf.");
  if (c.initial_load_in_hf_quantized && !c.initial_load_path)
    report.add("checkpoint.initial_load_in_hf_quantized", "true",
               "initial_load_in_hf_quantized requires an initial_load_path.");
  if (!c.initial_load_strict && !c.initial_load_in_hf)
    report.add("checkpoint.initial_load_strict", "false",
               "initial_load_strict=False requires initial_load_in_hf; other loads are strict.");
  if (looks && c.initial_load_in_hf && !c.initial_load_path &&
      !std::filesystem::is_directory(hf_assets_path))
    report.add("checkpoint.initial_load_in_hf", "true",
               fmt::format("without initial_load_path the weights come from hf_assets_path, and {} "
                           "is not a directory",
                           hf_assets_path));
}

void check_excluded(const CheckpointConfig& c, Report& report) {
  const auto& excluded = c.exclude_from_loading;
  if (contains(excluded, "model"))
    report.add("checkpoint.exclude_from_loading", "model",
               "the model cannot be excluded: start without a checkpoint instead");
  if (contains(excluded, "optimizer") && !contains(excluded, "lr_scheduler"))
    report.add("checkpoint.exclude_from_loading", "optimizer",
               "needs lr_scheduler beside it: a schedule must not go on over a fresh optimizer");
}

void check_sources(const DataloaderConfig& d, const std::string& path, Report& report) {
  for (size_t i = 0; i < d.sources.size(); ++i)
    if (d.sources[i].infinite != d.sources.front().infinite)
      report.add(fmt::format("{}.sources.{}.infinite", path, i),
                 d.sources[i].infinite ? "true" : "false",
                 "all sources must agree on it, and source 0 has the other value");
}

}  // namespace

void check_checkpoint(const TrainerConfig& config, const WorldFacts& world, Report& report) {
  const CheckpointConfig& c = *config.checkpoint;
  if (blank(c.folder))
    report.add("checkpoint.folder", "\"" + c.folder + "\"", "The 'folder' field cannot be empty.");
  check_initial_load(c, config.hf_assets_path, world, report);
  check_excluded(c, report);
  if (c.last_save_in_hf && !c.last_save_model_only)
    report.add("checkpoint.last_save_in_hf", "true",
               "last_save_in_hf requires last_save_model_only=True.");
  if (c.keep_latest_k == 1)
    report.add("checkpoint.keep_latest_k", "1",
               "We need to maintain at least 2 checkpoint replicas, as the last one may be in the "
               "process of being "
               "saved; 0 keeps all");
  if (c.keep_latest_k < 0)
    report.add("checkpoint.keep_latest_k", std::to_string(c.keep_latest_k),
               "must be at least 2, or 0 to keep all");
  const std::string mode = lower_case(c.async_mode);
  if (mode != "disabled" && mode != "async" && mode != "async_with_pinned_mem")
    report.add(
        "checkpoint.async_mode", "'" + c.async_mode + "'",
        fmt::format(
            "Invalid async_mode: {}; expected one of: disabled, async, async_with_pinned_mem",
            c.async_mode));
  if (c.create_seed_checkpoint) {
    if (!c.enable)
      report.add("checkpoint.create_seed_checkpoint", "true",
                 "needs --checkpoint.enable, or nothing is saved");
    if (world.world_size != 1)
      report.add("checkpoint.create_seed_checkpoint", "true",
                 fmt::format("is made by one process without parallelism, and WORLD_SIZE is {}",
                             world.world_size));
    if (c.load_only)
      report.add("checkpoint.create_seed_checkpoint", "true", "cannot be saved with load_only");
  }
}

void check_data(const TrainerConfig& config, Report& report) {
  check_sources(*config.dataloader, "dataloader", report);
  const ValidatorConfig& v = *config.validator;
  if (v.steps != -1 && v.steps <= 0)
    report.add("validator.steps", std::to_string(v.steps),
               "validation steps must be positive or -1");
  if (v.enable) check_sources(*v.dataloader, "validator.dataloader", report);
  const std::string& tokenizer = config.tokenizer->path;
  if (!tokenizer.empty() && !std::filesystem::exists(tokenizer))
    report.add("tokenizer.path", tokenizer, "there is no such file or folder");
}

void check_observation(const TrainerConfig& config, const WorldFacts& world, Report& report) {
  const ProfilerConfig& p = *config.profiler;
  if (p.enable_profiling && p.profile_freq < p.profiler_warmup + p.profiler_active)
    report.add("profiler.profile_freq", std::to_string(p.profile_freq),
               fmt::format("must be at least profiler_warmup + profiler_active ({} + {})",
                           p.profiler_warmup, p.profiler_active));
  const DebugConfig& d = config.debug;
  if (d.batch_invariant)
    report.add("debug.batch_invariant", "true",
               "Batch-invariant mode is not supported in pre-training.");
  if (d.deterministic_warn_only && !d.deterministic)
    report.warn("debug.deterministic_warn_only has no effect without debug.deterministic");
  if (d.moe_force_load_balance && world.model && world.model->num_experts == 0)
    report.warn("debug.moe_force_load_balance has no effect: the model is dense");
}

}  // namespace rhea::config
