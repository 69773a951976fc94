// What a file of a user includes: RHEA_CONFIG registers a run, RHEA_PLUGIN everything else. A
// plugin is one or more .cpp files compiled to a shared object that leaves Rhea's symbols open;
// they are found in the program that loads it.
#pragma once
#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include "rhea/components/data/datasets.h"
#include "rhea/components/lr_scheduler/lr_scheduler.h"
#include "rhea/components/metrics/sinks.h"
#include "rhea/components/tokenizer/readers.h"
#include "rhea/components/train_step/optimizers.h"
#include "rhea/config/derive.h"
#include "rhea/config/override_registry.h"
#include "rhea/config/trainer_config.h"
#include "rhea/models/registry.h"
#include "rhea/nn/losses.h"
#include "rhea/ops/table.h"
#include "rhea/plugin/stamp.h"

namespace rhea::plugin {

// What the function behind RHEA_PLUGIN gets: one call per thing that the plugin brings. Each
// forwards to the table of the layer that owns the thing, and throws Error where a name is taken.
class Plugin {
 public:
  // Made by the loader.
  explicit Plugin(std::string origin);

  // The file that registers, as it was named: where messages say that a thing comes from.
  const std::string& origin() const { return origin_; }

  // A whole op, which model code then adds with Graph::add. A constant at namespace scope; what it
  // must have: ops::add_op (rhea/ops/table.h), what its cells mean: ir::OpDef.
  void op(const ir::OpDef& row);
  void op(const ir::OpDef&& row) = delete;
  // A kernel for an op of the table, tried before the kernels that the op has.
  void cpu_kernel(std::string_view op, ir::CpuKernel kernel);
  void cpu_kernel(std::string_view op, ops::SimpleKernel kernel);
  // A model family: `model_spec.name` of runs whose model is made by the plugin.
  void family(models::Family family);
  // A data set: `dataloader.dataset`, and those of sources and of validation.
  void dataset(data::Dataset dataset);
  // A kind of tokenizer: `tokenizer.kind`.
  void tokenizer(tokenizer::Reader reader);
  // A place where the numbers of a run go: `metrics.sinks`.
  void metric_sink(metrics::Sink sink);
  // An update rule: `optimizer_name` of a param group.
  void optimizer(train_step::Optimizer optimizer);
  // A shape of the decay: `lr_scheduler.decay_type`.
  void lr_schedule(lr_scheduler::Decay decay);
  // A loss whose config is a C: `loss:NAME`, or a C in `config.loss`. `trace` is
  // (const nn::LossInputs&, const C&) -> f32 scalar.
  template <std::derived_from<LossConfig> C, class F>
  void loss(const std::string& name, F trace) {
    nn::add_loss<C>(name, std::move(trace), origin_);
  }

  // Registers an override of Target nodes, which override.imports activates by name. `factory`
  // makes the replacement from (const Target&), or from (const Target&, const Arguments&) with a
  // Config whose fields are what the override takes as {"name": value}.
  template <std::derived_from<Config> Target, class F>
  void override(std::string_view name, OverrideOptions options, F factory) {
    config::override_registry().add<Target>(name, std::move(options), std::move(factory), origin_);
  }

 private:
  std::string origin_;
};

// One RHEA_CONFIG of a file.
struct ConfigEntry {
  const char* name;         // of the function
  const char* help;         // one line, may be empty
  TrainerConfig (*make)();  // the function
  int line;                 // entries are listed in the order of the source
};

}  // namespace rhea::plugin

// The section outlives strip, and several files of one plugin each leave a stamp in it.
[[gnu::used, gnu::section(".rhea_stamp")]] static const char rhea_plugin_stamp[] =
    RHEA_PLUGIN_STAMP;

// RHEA_PLUGIN(p) { p.cpu_kernel(...); ... }: once in a plugin; p is a rhea::plugin::Plugin&.
#define RHEA_PLUGIN(p)                                                            \
  extern "C" [[gnu::visibility("default"), gnu::used]] void rhea_plugin_register( \
      [[maybe_unused]] ::rhea::plugin::Plugin& p)

// RHEA_CONFIG(function) or RHEA_CONFIG(function, "one line of help"): `--config function` runs it.
// It takes nothing and returns a rhea::TrainerConfig. Several in a file are fine; one may call
// another.
#define RHEA_CONFIG(function, ...)                                                                 \
  static_assert(std::same_as<decltype(function()), ::rhea::TrainerConfig>,                         \
                "RHEA_CONFIG(" #function "): the function must return rhea::TrainerConfig");       \
  extern "C" {                                                                                     \
  [[gnu::visibility("default"),                                                                    \
    gnu::used]] extern const ::rhea::plugin::ConfigEntry rhea_config_##function;                   \
  constinit const ::rhea::plugin::ConfigEntry rhea_config_##function = {#function, "" __VA_ARGS__, \
                                                                        &function, __LINE__};      \
  }
