// TrainerConfig: the whole of a run. A recipe is a function that returns one.
#pragma once
#include "rhea/config/model_converter.h"
#include "rhea/config/sections/activation_checkpoint.h"
#include "rhea/config/sections/checkpoint.h"
#include "rhea/config/sections/comm.h"
#include "rhea/config/sections/compile.h"
#include "rhea/config/sections/data.h"
#include "rhea/config/sections/debug.h"
#include "rhea/config/sections/hf_overrides.h"
#include "rhea/config/sections/loss.h"
#include "rhea/config/sections/metrics.h"
#include "rhea/config/sections/optimizer.h"
#include "rhea/config/sections/override.h"
#include "rhea/config/sections/parallelism.h"
#include "rhea/config/sections/training.h"

namespace rhea {

// Which model: family ("llama3"), flavor ("8B") and the model's own config, opaque at this layer.
struct ModelSpec : Config {
  std::string name;
  std::string flavor;
  Slot<Config> model;
  // Rewrite the model's tree in this order, when the run's config is completed and before overrides
  // and validation see it (rhea/models/converters/).
  Converters converters;
  bool converters_applied = false;               // whether they have rewritten the model
  std::vector<ConversionNote> conversion_notes;  // of the log

  void fields(Visitor& v) override {
    v("name", name, "model family");
    v("flavor", flavor, "size within the family");
    v("model", model, "the model's own config");
    if (!converters.empty()) v("converters", converters, "what rewrote the model's config");
  }
};

// Everything that a run is made of: what a recipe sets and the command line changes. What is built
// from a section of its own is a slot, `c.lr_scheduler->warmup_steps`: a recipe or an override may
// fill it with a derived config. Settings of the whole run are plain, `c.training.steps`.
struct TrainerConfig : Config {
  ModelSpec model_spec;
  std::string hf_assets_path = "./tests/assets/tokenizer";
  std::string dump_folder = "./outputs";
  std::string hf_model;
  HfOverridesConfig hf_overrides;
  Slot<ProfilerConfig> profiler;
  Slot<MetricsConfig> metrics;
  Slot<TokenizerConfig> tokenizer;
  Slot<DataloaderConfig> dataloader;
  Slot<OptimizerConfig> optimizer = default_adamw();  // update rules
  Slot<LrSchedulerConfig> lr_scheduler;
  TrainingConfig training;
  ParallelismConfig parallelism;
  Slot<CheckpointConfig> checkpoint;
  ActivationCheckpointConfig activation_checkpoint;
  CompileConfig compile;
  CommConfig comm;
  Slot<ValidatorConfig> validator;
  DebugConfig debug;
  OverrideConfig override;
  Slot<LossConfig> loss = ChunkedLossConfig{};
  ExecutorConfig executor;

  // In trainer_config.cpp, because every section is built, copied and visited in them: compiled
  // once, not in each recipe.
  TrainerConfig();
  TrainerConfig(const TrainerConfig& other);
  TrainerConfig(TrainerConfig&& other) noexcept;
  TrainerConfig& operator=(const TrainerConfig& other);
  TrainerConfig& operator=(TrainerConfig&& other) noexcept;
  ~TrainerConfig() override;

  void fields(Visitor& v) override {
    v("model_spec", model_spec, "the model", hidden);
    v("hf_assets_path", hf_assets_path,
      "folder with the tokenizer, config.json and weights in Hugging Face files");
    v("dump_folder", dump_folder, "root of everything that is written");
    v("hf_model", hf_model,
      "hf module: folder with config.json, or a label (then hf_assets_path has it)");
    v("hf_overrides", hf_overrides, "numbers that replace those of config.json");
    v("profiler", profiler, "traces and memory snapshots");
    v("metrics", metrics, "what is logged and where");
    v("tokenizer", tokenizer, "from text to ids");
    v("dataloader", dataloader, "from files to rows");
    v("optimizer", optimizer, "update rules");
    v("lr_scheduler", lr_scheduler, "learning rate over the steps");
    v("training", training, "batch, length, precision, number of steps");
    v("parallelism", parallelism, "how the graph is cut over ranks");
    v("checkpoint", checkpoint, "saving, loading, export");
    v("activation_checkpoint", activation_checkpoint, "what backward computes again");
    v("compile", compile, "what is compiled");
    v("comm", comm, "collectives");
    v("validator", validator, "loss on held-out data");
    v("debug", debug, "seed, checks, dumps");
    v("override", override, "replacements of config nodes");
    v("loss", loss, "what is minimised", any_loss{});
    v("executor", executor, "what runs the graph");
  }
};

}  // namespace rhea
