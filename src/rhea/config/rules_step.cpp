// Rules of what a step computes: compile, executor, activation_checkpoint, optimizer, loss.
#include <fmt/format.h>

#include <algorithm>

#include "rhea/config/pattern.h"
#include "rhea/config/rules.h"

namespace rhea::config {
namespace {

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

void check_compile(const TrainerConfig& config, Report& report) {
  const CompileConfig& c = config.compile;
  const bool compiles_model = c.enable && contains(c.components, "model");
  if (c.enable_async_tensor_parallel && !compiles_model)
    report.add("compile.enable_async_tensor_parallel", "true",
               "Async TP requires 'model' in --compile.components and --compile.enable");
  if (c.enable && !compiles_model)
    report.warn(
        fmt::format("compile.components={} has no effect without model: the graph is interpreted",
                    fmt::join(c.components, ",")));
  const bool pjrt = c.backend == "pjrt" || c.backend == "neuron";
  if (c.backend == "pjrt" && config.executor.plugin.empty())
    report.add("executor.plugin", "\"\"", "compile.backend=pjrt needs the path of a PJRT plugin");
  if (!pjrt && !config.executor.plugin.empty())
    report.warn("executor.plugin has no effect without compile.backend=pjrt");
  if (config.activation_checkpoint.mode == "memory_budget" && !compiles_model)
    report.add("activation_checkpoint.mode", "memory_budget",
               "Memory budget activation checkpointing requires the model to be compiled: give "
               "--compile.enable and "
               "model in --compile.components");
}

void check_optimizer(const TrainerConfig& config, const WorldFacts& world, Report& report) {
  const OptimizerConfig& o = *config.optimizer;
  if (o.param_groups.empty())
    report.add("optimizer.param_groups", "[]",
               "at least one group is needed, or no parameter is trained");
  for (size_t i = 0; i < o.param_groups.size(); ++i) {
    try {
      Pattern(o.param_groups[i].pattern);
    } catch (const Error& error) {
      report.add(fmt::format("optimizer.param_groups.{}.pattern", i), "", error.what());
    }
  }
  if (o.implementation == "foreach" || o.implementation == "for-loop")
    report.warn(fmt::format(
        "optimizer.implementation={} has no effect: the update is always one fused pass",
        o.implementation));

  const Slot<LossConfig>* loss = &config.loss;
  std::string path = "loss";
  if (const auto* chunked = loss->as<ChunkedLossConfig>()) {
    loss = &chunked->loss_fn;
    path = "loss.loss_fn";
    if (loss->as<ChunkedLossConfig>())
      report.add(path, "ChunkedLossWrapper", "a chunked loss cannot hold another one");
  }
  const auto* entropy = loss->as<CrossEntropyLossConfig>();
  const int64_t vocab_size = world.model ? world.model->vocab_size : 0;
  if (entropy && entropy->global_vocab_size && vocab_size > 0 &&
      *entropy->global_vocab_size != vocab_size)
    report.add(path + ".global_vocab_size", std::to_string(*entropy->global_vocab_size),
               fmt::format("the model's vocabulary has {} entries", vocab_size));
}

}  // namespace rhea::config
