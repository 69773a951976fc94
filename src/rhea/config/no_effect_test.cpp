// Every option either acts in every run, or the table says when it does not and one warning
// follows.
#include "rhea/config/no_effect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "rhea/config/load.h"
#include "rhea/config/option_index.h"
#include "rhea/config/test_recipe.h"

namespace rhea::config {
namespace {

std::vector<std::string> warnings_about(const std::string& options, const std::string& path) {
  const auto line = load(words("--module llama3 --config llama3_debugmodel " + options),
                         test_registry(), {}, nullptr);
  std::vector<std::string> found;
  for (const std::string& warning : line.report.warnings)
    if (warning.find(path) != std::string::npos) found.push_back(warning);
  return found;
}

struct Case {
  const char* option;  // with a value that is not the default
  const char* idle;    // options under which nothing reads it
  const char* acting;  // options under which it acts
  const char* path;
};

constexpr Case kCases[] = {
    {"--hf_overrides.n_layers 2", "", nullptr, "hf_overrides.n_layers"},
    {"--metrics.save_tb_folder x", "", "--metrics.enable_tensorboard", "metrics.save_tb_folder"},
    {"--metrics.save_for_all_ranks", "", nullptr, "metrics.save_for_all_ranks"},
    {"--tokenizer.path x", "--dataloader.dataset tokens", "", "tokenizer.path"},
    {"--tokenizer.path x", "--dataloader.dataset tokens",
     "--dataloader.dataset tokens --checkpoint.enable --checkpoint.last_save_in_hf",
     "tokenizer.path"},
    {"--tokenizer.kind words", "--dataloader.dataset tokens", "", "tokenizer.kind"},
    {"--tokenizer.special_tokens_in_text plain", "--dataloader.dataset random", "",
     "tokenizer.special_tokens_in_text"},
    {"--lr_scheduler.decay_type sqrt", "--lr_scheduler.decay_ratio 0", "", "decay_type"},
    {"--lr_scheduler.min_lr_factor 0.1", "--lr_scheduler.decay_ratio 0", "", "min_lr_factor"},
    {"--training.mixed_precision_param float32", "--training.dtype bfloat16", "",
     "mixed_precision_param has no"},
    {"--parallelism.fsdp_reshard_after_forward never", "",
     "--parallelism.data_parallel_shard_degree 2", "fsdp_reshard_after_forward"},
    {"--parallelism.no_enable_sequence_parallel", "", "--parallelism.tensor_parallel_degree 2",
     "enable_sequence_parallel"},
    {"--parallelism.context_parallel_load_balancer None", "",
     "--parallelism.context_parallel_degree 2", "context_parallel_load_balancer"},
    {"--parallelism.context_parallel_ptrr_mask_key x", "",
     "--parallelism.context_parallel_degree 2", "context_parallel_ptrr_mask_key"},
    {"--parallelism.pipeline_parallel_microbatch_size 2", "",
     "--parallelism.pipeline_parallel_degree 2", "pipeline_parallel_microbatch_size"},
    {"--parallelism.pipeline_parallel_schedule GPipe", "",
     "--parallelism.pipeline_parallel_degree 2", "pipeline_parallel_schedule"},
    {"--parallelism.pipeline_parallel_layers_per_stage 2", "",
     "--parallelism.pipeline_parallel_degree 2", "pipeline_parallel_layers_per_stage"},
    {"--parallelism.pipeline_parallel_first_stage_less_layers 2", "",
     "--parallelism.pipeline_parallel_degree 2", "pipeline_parallel_first_stage_less_layers"},
    {"--parallelism.pipeline_parallel_last_stage_less_layers 2", "",
     "--parallelism.pipeline_parallel_degree 2", "pipeline_parallel_last_stage_less_layers"},
    {"--parallelism.module_fqns_per_model_part a;b", "", "--parallelism.pipeline_parallel_degree 2",
     "module_fqns_per_model_part"},
    {"--checkpoint.interval 5", "", "--checkpoint.enable", "checkpoint.interval"},
    {"--checkpoint.interval 5", "--checkpoint.enable --checkpoint.load_only", "--checkpoint.enable",
     "checkpoint.interval"},
    {"--checkpoint.no_last_save_model_only", "", "--checkpoint.enable", "last_save_model_only"},
    {"--checkpoint.last_save_in_hf", "", "--checkpoint.enable", "last_save_in_hf"},
    {"--checkpoint.export_dtype bfloat16",
     "--checkpoint.enable --checkpoint.no_last_save_model_only", "--checkpoint.enable",
     "export_dtype"},
    {"--checkpoint.keep_latest_k 3", "", "--checkpoint.enable", "keep_latest_k"},
    {"--checkpoint.enable_first_step_checkpoint", "", "--checkpoint.enable",
     "enable_first_step_checkpoint"},
    {"--checkpoint.async_mode async", "", "--checkpoint.enable", "async_mode"},
    {"--checkpoint.no_save_on_signal", "", "--checkpoint.enable", "save_on_signal"},
    {"--checkpoint.no_keep_last_full", "--checkpoint.enable --checkpoint.no_last_save_model_only",
     "--checkpoint.enable", "keep_last_full"},
    {"--checkpoint.on_full_disk retry", "", "--checkpoint.enable", "on_full_disk"},
    {"--checkpoint.no_initial_load_model_only", "--checkpoint.enable",
     "--checkpoint.enable --checkpoint.initial_load_path /", "initial_load_model_only has no"},
    {"--checkpoint.folder x", "", "--checkpoint.enable", "checkpoint.folder"},
    {"--checkpoint.initial_load_path /", "", "--checkpoint.enable", "initial_load_path"},
    {"--checkpoint.initial_load_in_hf", "", "--checkpoint.enable", "initial_load_in_hf"},
    {"--checkpoint.initial_load_in_hf_quantized", "", "--checkpoint.enable",
     "initial_load_in_hf_quantized"},
    {"--checkpoint.load_step 4", "", "--checkpoint.enable", "load_step"},
    {"--checkpoint.exclude_from_loading dataloader", "", "--checkpoint.enable",
     "exclude_from_loading"},
    {"--checkpoint.load_only", "", "--checkpoint.enable", "load_only"},
    {"--activation_checkpoint.force_recompute_mm_shapes_by_fqns w1",
     "--activation_checkpoint.mode full", "", "force_recompute_mm_shapes_by_fqns"},
    {"--activation_checkpoint.memory_budget 0.3", "", "--activation_checkpoint.mode memory_budget",
     "activation_checkpoint.memory_budget"},
    {"--activation_checkpoint.visualize_memory_budget_pareto", "",
     "--activation_checkpoint.mode memory_budget", "visualize_memory_budget_pareto"},
    {"--compile.components model", "", nullptr, "compile.components"},
    {"--compile.components model", "--compile.no_enable", nullptr, "compile.components"},
    {"--compile.enable_async_tensor_parallel", "", "--parallelism.tensor_parallel_degree 2",
     "enable_async_tensor_parallel"},
    {"--executor.plugin_options a=1", "", "--compile.backend pjrt", "executor.plugin_options"},
    {"--executor.compile_options a=1", "", "--compile.backend pjrt", "executor.compile_options"},
    {"--executor.devices_per_process 2", "", "--compile.backend pjrt", "devices_per_process"},
    {"--comm.init_timeout_seconds 5", "", nullptr, "comm.init_timeout_seconds"},
    {"--comm.train_timeout_seconds 5", "", nullptr, "comm.train_timeout_seconds"},
    {"--comm.trace_buf_size 5", "", nullptr, "comm.trace_buf_size"},
    {"--comm.save_traces_folder x", "", nullptr, "comm.save_traces_folder"},
    {"--comm.save_traces_file_prefix x", "", nullptr, "comm.save_traces_file_prefix"},
    {"--comm.port 5", "", nullptr, "comm.port"},
    {"--validator.freq 5", "", "--validator.enable", "validator.freq"},
    {"--validator.steps 5", "", "--validator.enable", "validator.steps"},
    {"--validator.dataloader.shuffle", "", "--validator.enable", "validator.dataloader.shuffle"},
    {"--validator.dataloader.shuffle",
     "--validator.enable --validator.dataloader.dataset_path x.json.gz", "--validator.enable",
     "validator.dataloader.shuffle"},
    {"--validator.dataloader.infinite", "--validator.enable", nullptr,
     "validator.dataloader.infinite"},
    {"--dataloader.dataset jsonl", "--dataloader.sources.0.dataset debug_text", "",
     "dataloader.dataset has no"},
    {"--dataloader.dataset_path x", "--dataloader.sources.0.dataset debug_text", "",
     "dataloader.dataset_path has no"},
    {"--dataloader.dataset_path x", "--dataloader.dataset random", "",
     "dataloader.dataset_path has no"},
    {"--dataloader.no_infinite", "--dataloader.sources.0.dataset debug_text", "",
     "dataloader.infinite has no"},
    {"--dataloader.num_workers 2", "--dataloader.dataset tokens", "", "dataloader.num_workers"},
    {"--dataloader.shuffle", "--dataloader.dataset tokens", "", "dataloader.shuffle"},
    {"--dataloader.shuffle", "--dataloader.dataset jsonl --dataloader.dataset_path a.jsonl.gz",
     "--dataloader.dataset jsonl --dataloader.dataset_path a.jsonl", "dataloader.shuffle"},
    {"--dataloader.shuffle", "--dataloader.dataset jsonl --dataloader.dataset_path a.jsonl.zst", "",
     "dataloader.shuffle"},
    {"--dataloader.seed 7", "--dataloader.dataset tokens", "--dataloader.dataset random",
     "dataloader.seed"},
    {"--dataloader.packing greedy", "--dataloader.dataset tokens", "", "dataloader.packing"},
    {"--dataloader.num_packing_bins 4", "", "--dataloader.packing first_fit",
     "dataloader.num_packing_bins"},
    {"--dataloader.num_packing_bins 4", "--dataloader.dataset tokens",
     "--dataloader.packing first_fit", "dataloader.num_packing_bins"},
    {"--dataloader.text_field x", "", "--dataloader.dataset jsonl --dataloader.dataset_path x",
     "dataloader.text_field"},
    {"--dataloader.on_bad_row skip", "--dataloader.dataset tokens", "", "dataloader.on_bad_row"},
    {"--dataloader.stopping_strategy all_exhausted", "",
     "--dataloader.sources.0.dataset debug_text", "dataloader.stopping_strategy"},
};

TEST(NoEffect, OneWarningWhereNothingReadsTheOptionNoneWhereItActs) {
  for (const Case& c : kCases) {
    const std::string idle = std::string(c.option) + " " + c.idle;
    EXPECT_EQ(warnings_about(idle, c.path).size(), 1U)
        << idle << "\n"
        << testing::PrintToString(warnings_about(idle, c.path));
    if (c.acting == nullptr) continue;
    const std::string acting = std::string(c.option) + " " + c.acting;
    EXPECT_THAT(warnings_about(acting, c.path), testing::IsEmpty()) << acting;
  }
}

TEST(NoEffect, ADefaultThatNobodyWroteIsNotWarnedOf) {
  EXPECT_THAT(warnings_about("--checkpoint.enable", "initial_load"), testing::IsEmpty());
  EXPECT_THAT(
      warnings_about("--checkpoint.enable --checkpoint.initial_load_model_only", "initial_load"),
      testing::ElementsAre(
          "initial_load_model_only=True has no effect without an initial_load_path."));
  EXPECT_THAT(warnings_about("--checkpoint.enable --checkpoint.initial_load_model_only "
                             "--checkpoint.initial_load_path /",
                             "initial_load"),
              testing::IsEmpty());
}

// These act in every run, or a rule of their own warns or refuses.
const std::vector<std::string> kAlwaysAct = {
    "hf_assets_path",
    "dump_folder",
    "hf_model",
    "metrics.log_freq",
    "metrics.enable_tensorboard",
    "metrics.enable_wandb",
    "metrics.enable_jsonl",
    "metrics.disable_color_printing",
    "metrics.peak_flops",
    "dataloader.prefetch_factor",
    "dataloader.sources",
    "metrics.sinks",
    "optimizer.param_groups",
    "optimizer.implementation",
    "lr_scheduler.warmup_steps",
    "lr_scheduler.total_steps",
    "lr_scheduler.decay_ratio",
    "parallelism.data_parallel_replicate_degree",
    "parallelism.data_parallel_shard_degree",
    "parallelism.tensor_parallel_degree",
    "parallelism.context_parallel_degree",
    "parallelism.expert_parallel_degree",
    "parallelism.pipeline_parallel_degree",
    "checkpoint.enable",
    "checkpoint.create_seed_checkpoint",
    "activation_checkpoint.mode",
    "compile.enable",
    "compile.backend",
    "executor.plugin",
    "executor.cache_dir",
    "executor.num_threads",
    "comm.mode",
    "validator.enable",
    "override.imports",
};

TEST(NoEffect, EveryOptionIsInTheTableOrAlwaysActs) {
  TrainerConfig config;
  const OptionIndex index(config);
  for (const Option& option : index.options()) {
    if (!std::holds_alternative<LeafOption>(option.kind) || option.info.hidden) continue;
    const std::string& path = option.path;
    // Whole sections whose options act or are refused by rules of their own.
    const bool by_section = path.starts_with("training.") || path.starts_with("debug.") ||
                            path.starts_with("profiler.") || path.starts_with("loss.") ||
                            path.starts_with("optimizer.param_groups.") ||
                            path.starts_with("model_spec.");
    const bool listed = std::ranges::find(kAlwaysAct, path) != kAlwaysAct.end() || by_section;
    EXPECT_TRUE(listed || may_have_no_effect(path))
        << path << " is new: add a row to the table of no_effect.cpp, or list it here";
  }
}

}  // namespace
}  // namespace rhea::config
