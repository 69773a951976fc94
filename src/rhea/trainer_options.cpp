// One function per component.
#include "rhea/trainer_options.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "rhea/base/error.h"
#include "rhea/components/tokenizer/readers.h"
#include "rhea/ops/peak.h"

namespace rhea {

train_step::StepOptions step_options(const TrainerConfig& config) {
  train_step::StepOptions options;
  options.trace.seq_len = config.training.seq_len;
  options.trace.num_tokens = config.training.local_batch_size * config.training.seq_len;
  options.trace.param_dtype = parse_dtype(config.training.dtype);
  options.trace.compute_dtype = options.trace.param_dtype == DType::bf16
                                    ? DType::bf16
                                    : parse_dtype(config.training.mixed_precision_param);
  options.trace.force_load_balance = config.debug.moe_force_load_balance;
  options.loss = config.loss;
  options.accumulates = config::accumulation_steps(config, 1) > 1;
  options.validates = config.validator->enable;
  options.activation_checkpoint = config.activation_checkpoint;
  options.optimizer = config.optimizer;
  options.disable_passes = config.debug.disable_passes;
  options.dump_graphs = config.debug.dump_graphs;
  return options;
}

exec::cpu::CompileOptions compile_options(const TrainerConfig& config) {
  exec::cpu::CompileOptions options;
  const auto& components = config.compile.components;
  options.interpret =
      !config.compile.enable || std::ranges::find(components, "model") == components.end();
  options.detect_anomaly = config.debug.detect_anomaly;
  options.disable_passes = config.debug.disable_passes;
  options.dump_graphs = config.debug.dump_graphs;
  return options;
}

data::DataLoaderOptions loader_options(const TrainerConfig& config,
                                       const DataloaderConfig& loader) {
  data::DataLoaderOptions options;
  options.config = &loader;
  options.dataset = loader.dataset;
  options.dataset_path = loader.dataset_path;
  options.infinite = loader.infinite;
  options.num_workers = static_cast<int>(loader.num_workers);
  if (loader.prefetch_factor) options.prefetch_factor = static_cast<int>(*loader.prefetch_factor);
  options.seed = static_cast<uint64_t>(loader.seed);
  options.shuffle = loader.shuffle;
  options.packing = data::parse_packing(loader.packing);
  options.num_packing_bins = static_cast<int>(loader.num_packing_bins);
  options.text_field = loader.text_field;
  options.on_bad_row = data::parse_on_bad_row(loader.on_bad_row);
  for (const auto& source : loader.sources)
    options.sources.push_back(
        {source.dataset, source.dataset_path, source.infinite, source.weight});
  options.stopping_strategy = data::parse_stopping_strategy(loader.stopping_strategy);
  options.special_tokens_in_text = config.tokenizer->special_tokens_in_text == "plain"
                                       ? tokenizer::SpecialTokensInText::plain
                                       : tokenizer::SpecialTokensInText::control;
  options.rows = config.training.local_batch_size;
  options.seq_len = config.training.seq_len;
  options.index_folder = std::filesystem::path(config.dump_folder) / "data_index";
  return options;
}

std::filesystem::path cache_folder(const TrainerConfig& config) {
  constexpr std::string_view variable = "$XDG_CACHE_HOME";
  const std::string& folder = config.executor.cache_dir;
  if (!folder.starts_with(variable)) return folder;
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text != nullptr ? text : "");
  };
  std::string base = value("XDG_CACHE_HOME");
  if (base.empty() && !value("HOME").empty()) base = value("HOME") + "/.cache";
  return base.empty() ? "" : base + folder.substr(variable.size());
}

exec::cpu::Limits machine_limits(const TrainerConfig& config, ThreadPool& pool, ops::Measure when) {
  const std::filesystem::path folder = cache_folder(config);
  return {.flops_f32 = ops::measured_peak_flops(DType::f32, pool, folder, when),
          .flops_bf16 = ops::measured_peak_flops(DType::bf16, pool, folder, when),
          .bytes = ops::measured_bandwidth(pool, folder, when)};
}

std::filesystem::path tokenizer_path(const TrainerConfig& config) {
  return config.tokenizer->path.empty() ? config.hf_assets_path : config.tokenizer->path;
}

std::shared_ptr<const tokenizer::Tokenizer> load_tokenizer_for(const TrainerConfig& config) {
  const auto needs = [](const DataloaderConfig& loader) {
    if (loader.sources.empty()) return data::needs_tokenizer(loader.dataset);
    return std::ranges::any_of(
        loader.sources, [](const auto& source) { return data::needs_tokenizer(source.dataset); });
  };
  if (!needs(*config.dataloader) &&
      !(config.validator->enable && needs(*config.validator->dataloader)))
    return nullptr;
  const std::filesystem::path path = tokenizer_path(config);
  if (path.filename() == "tokenizer.model")
    throw Error(
        "{}: a tokenizer.model file is not read; give the folder with tokenizer.json, or with "
        "vocab.json and merges.txt",
        path.string());
  return tokenizer::load_tokenizer({path, &*config.tokenizer}, config.tokenizer->kind);
}

}  // namespace rhea
