// The table: option, and the reason why it has no effect; empty where it has one.
#include "rhea/config/no_effect.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <array>

#include "rhea/config/leaf_text.h"
#include "rhea/config/option_index.h"

namespace rhea::config {
namespace {

using Reason = std::string_view;
constexpr Reason kActs = "";

bool is(const std::string& a, const char* b) { return ::strcasecmp(a.c_str(), b) == 0; }

bool any_source(const DataloaderConfig& d, bool (*holds)(const std::string& dataset)) {
  if (d.sources.empty()) return holds(d.dataset);
  return std::ranges::any_of(d.sources, [&](const auto& source) { return holds(source.dataset); });
}
bool any_path(const DataloaderConfig& d, bool (*holds)(const std::string& path)) {
  if (d.sources.empty()) return holds(d.dataset_path.value_or(""));
  return std::ranges::any_of(
      d.sources, [&](const auto& source) { return holds(source.dataset_path.value_or("")); });
}
bool is_text(const std::string& dataset) {
  return !is(dataset, "tokens") && !is(dataset, "random");
}
bool has_rows_of_fields(const std::string& dataset) {
  return is_text(dataset) && !is(dataset, "text") && !is(dataset, "debug_text") &&
         !is(dataset, "debug_text_validation");
}
bool is_uncompressed(const std::string& path) {
  return !path.ends_with(".gz") && !path.ends_with(".zst");
}
bool reads_text(const DataloaderConfig& d) { return any_source(d, is_text); }
bool is_shuffled(const DataloaderConfig& d) {
  return reads_text(d) && any_path(d, is_uncompressed);
}

constexpr Reason kReadyRows = "the data set has ready rows, which are read in order";

struct LoaderRow {
  std::string_view option;
  Reason (*reason)(const DataloaderConfig&);
};
Reason one_of_sources(const DataloaderConfig& d) {
  return d.sources.empty() ? kActs : "sources are given, each with its own";
}
const std::array kLoaderRows = {
    LoaderRow{"dataset", one_of_sources},
    LoaderRow{"dataset_path",
              [](const DataloaderConfig& d) -> Reason {
                if (!d.sources.empty()) return one_of_sources(d);
                return is(d.dataset, "random") ? "random rows come from no file" : kActs;
              }},
    LoaderRow{"infinite", one_of_sources},
    LoaderRow{"num_workers",
              [](const DataloaderConfig& d) -> Reason {
                return reads_text(d) ? kActs : "ready rows need no tokenizing";
              }},
    LoaderRow{"shuffle",
              [](const DataloaderConfig& d) -> Reason {
                if (!reads_text(d)) return kReadyRows;
                return is_shuffled(d) ? kActs : "compressed files are read in file order";
              }},
    LoaderRow{"seed",
              [](const DataloaderConfig& d) -> Reason {
                if (!d.sources.empty() || is(d.dataset, "random") || is_shuffled(d)) return kActs;
                return reads_text(d) ? "compressed files are read in file order" : kReadyRows;
              }},
    LoaderRow{"packing",
              [](const DataloaderConfig& d) { return reads_text(d) ? kActs : kReadyRows; }},
    LoaderRow{"num_packing_bins",
              [](const DataloaderConfig& d) -> Reason {
                if (!reads_text(d)) return kReadyRows;
                return d.packing == "first_fit" ? kActs : "only packing=first_fit has open rows";
              }},
    LoaderRow{"text_field",
              [](const DataloaderConfig& d) -> Reason {
                return any_source(d, has_rows_of_fields) ? kActs : "the data set has no fields";
              }},
    LoaderRow{"on_bad_row",
              [](const DataloaderConfig& d) { return reads_text(d) ? kActs : kReadyRows; }},
    LoaderRow{"stopping_strategy",
              [](const DataloaderConfig& d) -> Reason {
                return d.sources.empty() ? "there is one source; see dataloader.sources" : kActs;
              }},
};

bool needs_tokenizer(const TrainerConfig& c) {
  return reads_text(*c.dataloader) || (c.validator->enable && reads_text(*c.validator->dataloader));
}
bool exports_hf(const TrainerConfig& c) {
  return c.checkpoint->enable && c.checkpoint->last_save_model_only &&
         c.checkpoint->last_save_in_hf;
}
bool uses_plugin(const TrainerConfig& c) {
  return c.compile.backend == "pjrt" || c.compile.backend == "neuron";
}

Reason without_collectives(const TrainerConfig&) { return "one process has no collectives"; }
Reason without_pipeline(const TrainerConfig& c) {
  return c.parallelism.pipeline_parallel_degree > 1 ? kActs : "pipeline_parallel_degree is 1";
}
Reason without_context(const TrainerConfig& c) {
  return c.parallelism.context_parallel_degree > 1 ? kActs : "context_parallel_degree is 1";
}
Reason without_plugin(const TrainerConfig& c) {
  return uses_plugin(c) ? kActs : "the CPU executor has no plugin: compile.backend is not pjrt";
}
Reason without_checkpoints(const TrainerConfig& c) {
  return c.checkpoint->enable ? kActs : "checkpoint.enable is off";
}
Reason without_saves(const TrainerConfig& c) {
  if (!c.checkpoint->enable) return without_checkpoints(c);
  return c.checkpoint->load_only ? "checkpoint.load_only never saves" : kActs;
}
Reason without_last_model(const TrainerConfig& c) {
  if (const Reason reason = without_saves(c); !reason.empty()) return reason;
  return c.checkpoint->last_save_model_only ? kActs : "checkpoint.last_save_model_only is off";
}
Reason without_decay(const TrainerConfig& c) {
  return c.lr_scheduler->decay_ratio == 0.0 ? "lr_scheduler.decay_ratio is 0: nothing decays"
                                            : kActs;
}
Reason without_budget(const TrainerConfig& c) {
  return is(c.activation_checkpoint.mode, "memory_budget")
             ? kActs
             : "activation_checkpoint.mode is not memory_budget";
}
Reason without_tokenizer(const TrainerConfig& c) {
  return needs_tokenizer(c) ? kActs : "the data set has ready rows: no text is encoded";
}
Reason without_config_json(const TrainerConfig& c) {
  return c.model_spec.flavor == "from_config"
             ? kActs
             : "the sizes of this model do not come from a config.json";
}
Reason without_validation(const TrainerConfig& c) {
  return c.validator->enable ? kActs : "validator.enable is off";
}

struct Row {
  std::string_view option;  // a path, or its beginning up to a '.'
  Reason (*reason)(const TrainerConfig&);
};
const std::array kRows = {
    Row{"metrics.save_tb_folder",
        [](const TrainerConfig& c) -> Reason {
          return c.metrics->enable_tensorboard ? kActs : "metrics.enable_tensorboard is off";
        }},
    Row{"metrics.save_for_all_ranks",
        [](const TrainerConfig&) -> Reason { return "there is one rank"; }},
    Row{"hf_overrides.", without_config_json},
    Row{"tokenizer.path",
        [](const TrainerConfig& c) -> Reason {
          return exports_hf(c) ? kActs : without_tokenizer(c);
        }},
    Row{"tokenizer.kind", without_tokenizer},
    Row{"tokenizer.special_tokens_in_text", without_tokenizer},
    Row{"lr_scheduler.decay_type", without_decay},
    Row{"lr_scheduler.min_lr_factor", without_decay},
    Row{"training.mixed_precision_param",
        [](const TrainerConfig& c) -> Reason {
          return c.training.dtype == "bfloat16" ? "training.dtype=bfloat16 computes in bfloat16"
                                                : kActs;
        }},
    Row{"parallelism.fsdp_reshard_after_forward",
        [](const TrainerConfig& c) -> Reason {
          return c.parallelism.data_parallel_shard_degree > 1 ? kActs : "no parameter is sharded";
        }},
    Row{"parallelism.enable_sequence_parallel",
        [](const TrainerConfig& c) -> Reason {
          return c.parallelism.tensor_parallel_degree > 1 ? kActs : "tensor_parallel_degree is 1";
        }},
    Row{"parallelism.context_parallel_load_balancer", without_context},
    Row{"parallelism.context_parallel_ptrr_mask_key", without_context},
    Row{"parallelism.pipeline_parallel_microbatch_size", without_pipeline},
    Row{"parallelism.pipeline_parallel_schedule", without_pipeline},
    Row{"parallelism.pipeline_parallel_schedule_csv", without_pipeline},
    Row{"parallelism.pipeline_parallel_layers_per_stage", without_pipeline},
    Row{"parallelism.pipeline_parallel_first_stage_less_layers", without_pipeline},
    Row{"parallelism.pipeline_parallel_last_stage_less_layers", without_pipeline},
    Row{"parallelism.module_fqns_per_model_part", without_pipeline},
    Row{"checkpoint.interval", without_saves},
    Row{"checkpoint.last_save_model_only", without_saves},
    Row{"checkpoint.last_save_in_hf", without_saves},
    Row{"checkpoint.export_dtype", without_last_model},
    Row{"checkpoint.merge_adapters",
        [](const TrainerConfig& c) -> Reason {
          if (c.model_spec.converters.empty()) return "the model has no LoRA adapters";
          return c.checkpoint->last_save_in_hf ? without_last_model(c)
                                               : "last_save_in_hf is off: adapters stay beside "
                                                 "the weights";
        }},
    Row{"checkpoint.keep_latest_k", without_saves},
    Row{"checkpoint.enable_first_step_checkpoint", without_saves},
    Row{"checkpoint.async_mode", without_saves},
    Row{"checkpoint.save_on_signal", without_saves},
    Row{"checkpoint.keep_last_full", without_last_model},
    Row{"checkpoint.on_full_disk", without_saves},
    Row{"checkpoint.initial_load_model_only",
        [](const TrainerConfig& c) -> Reason {
          if (!c.checkpoint->enable) return without_checkpoints(c);
          return c.checkpoint->initial_load_path || c.checkpoint->initial_load_in_hf
                     ? kActs
                     : "there is no checkpoint.initial_load_path";
        }},
    Row{"checkpoint.folder", without_checkpoints},
    Row{"checkpoint.initial_load_path", without_checkpoints},
    Row{"checkpoint.initial_load_in_hf", without_checkpoints},
    Row{"checkpoint.initial_load_in_hf_quantized", without_checkpoints},
    Row{"checkpoint.initial_load_strict", without_checkpoints},
    Row{"checkpoint.load_step", without_checkpoints},
    Row{"checkpoint.exclude_from_loading", without_checkpoints},
    Row{"checkpoint.load_only", without_checkpoints},
    Row{"activation_checkpoint.force_recompute_mm_shapes_by_fqns",
        [](const TrainerConfig& c) -> Reason {
          return is(c.activation_checkpoint.mode, "selective")
                     ? kActs
                     : "activation_checkpoint.mode is not selective";
        }},
    Row{"activation_checkpoint.memory_budget", without_budget},
    Row{"activation_checkpoint.visualize_memory_budget_pareto", without_budget},
    Row{"compile.components",
        [](const TrainerConfig& c) -> Reason {
          if (!c.compile.enable) return "compile.enable is off";
          const auto& parts = c.compile.components;
          // Without model: a rule of its own says that nothing is compiled.
          return std::ranges::find(parts, "model") != parts.end() && !uses_plugin(c)
                     ? "the CPU executor compiles the whole step as soon as model is in it"
                     : kActs;
        }},
    Row{"compile.enable_async_tensor_parallel",
        [](const TrainerConfig& c) -> Reason {
          return c.parallelism.tensor_parallel_degree > 1 ? kActs : "tensor_parallel_degree is 1";
        }},
    Row{"executor.plugin_options", without_plugin},
    Row{"executor.compile_options", without_plugin},
    Row{"executor.devices_per_process", without_plugin},
    Row{"comm.init_timeout_seconds", without_collectives},
    Row{"comm.train_timeout_seconds", without_collectives},
    Row{"comm.trace_buf_size", without_collectives},
    Row{"comm.save_traces_folder", without_collectives},
    Row{"comm.save_traces_file_prefix", without_collectives},
    Row{"comm.port", without_collectives},
    Row{"validator.freq", without_validation},
    Row{"validator.steps", without_validation},
    Row{"validator.dataloader.",
        without_validation},  // when validation is on, the rows of a loader hold
};

constexpr std::string_view kLoaders[] = {"dataloader.", "validator.dataloader."};

bool covers(const Row& row, std::string_view option) {
  return row.option.ends_with('.') ? option.starts_with(row.option) : option == row.option;
}

constexpr std::string_view kFollowsSteps = "validator.dataloader.infinite";

Reason reason_of(const TrainerConfig& config, std::string_view option) {
  for (const Row& row : kRows) {
    if (!covers(row, option)) continue;
    if (const Reason reason = row.reason(config); !reason.empty()) return reason;
  }
  for (const std::string_view prefix : kLoaders) {
    if (!option.starts_with(prefix)) continue;
    const DataloaderConfig& loader =
        *(prefix == kLoaders[0] ? config.dataloader : config.validator->dataloader);
    if (option == kFollowsSteps) return "it follows validator.steps";
    for (const LoaderRow& row : kLoaderRows)
      if (option.substr(prefix.size()) == row.option) return row.reason(loader);
  }
  return kActs;
}

}  // namespace

bool may_have_no_effect(std::string_view option) {
  if (std::ranges::any_of(kRows, [&](const Row& row) { return covers(row, option); })) return true;
  return option.starts_with(kLoaders[0]) &&
         std::ranges::any_of(kLoaderRows, [&](const LoaderRow& row) {
           return option.substr(kLoaders[0].size()) == row.option;
         });
}

void warn_without_effect(const TrainerConfig& config, const std::vector<std::string>& given,
                         Report& report) {
  TrainerConfig defaults;
  // OptionIndex points into a tree that it could write; this one only reads.
  const OptionIndex before(defaults), now(const_cast<TrainerConfig&>(config));
  const auto text = [](const OptionIndex& index, const std::string& path) {
    const Option* option = index.find(path);
    const auto* leaf = option ? std::get_if<LeafOption>(&option->kind) : nullptr;
    return leaf ? leaf_text(leaf->place) : std::string();
  };
  const CheckpointConfig& checkpoint = *config.checkpoint;
  for (const std::string& path : given) {
    // The default, but who writes it expects it to do something.
    if (path == "checkpoint.initial_load_model_only" && checkpoint.enable &&
        checkpoint.initial_load_model_only && !checkpoint.initial_load_path &&
        !checkpoint.initial_load_in_hf) {
      report.warn("initial_load_model_only=True has no effect without an initial_load_path.");
      continue;
    }
    // What another option overwrites is no longer what was given.
    const bool overwritten = path == kFollowsSteps;
    if (!overwritten && text(before, path) == text(now, path)) continue;
    if (const Reason reason = reason_of(config, path); !reason.empty())
      report.warn(fmt::format("{} has no effect: {}", path, reason));
  }
}

}  // namespace rhea::config
