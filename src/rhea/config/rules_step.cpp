// Rules of what a step computes: compile, executor, activation_checkpoint, optimizer, loss.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "rhea/config/leaf_text.h"
#include "rhea/config/pattern.h"
#include "rhea/config/rules.h"

namespace rhea::config {
namespace {

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

struct OptimizerKind {
  std::string_view name;
  std::set<std::string_view> kwargs;
};
const std::vector<OptimizerKind>& optimizer_kinds() {
  static const std::vector<OptimizerKind> kinds = {
      {"AdamW", {"lr", "betas", "eps", "weight_decay"}},
      {"Adam", {"lr", "betas", "eps", "weight_decay"}},
      {"SGD", {"lr", "momentum", "dampening", "nesterov", "weight_decay"}},
      {"DistMuon",
       {"lr", "weight_decay", "momentum", "nesterov", "ns_coefficients", "eps", "ns_steps",
        "adjust_lr_fn"}}};
  return kinds;
}

// Names of the arguments that are set.
std::vector<std::string_view> names_set(const OptimizerKwargs& k) {
  std::vector<std::string_view> names;
  const auto note = [&](std::string_view name, bool set) {
    if (set) names.push_back(name);
  };
  note("lr", k.lr.has_value());
  note("betas", k.betas.has_value());
  note("eps", k.eps.has_value());
  note("weight_decay", k.weight_decay.has_value());
  note("momentum", k.momentum.has_value());
  note("dampening", k.dampening.has_value());
  note("nesterov", k.nesterov.has_value());
  note("ns_coefficients", k.ns_coefficients.has_value());
  note("ns_steps", k.ns_steps.has_value());
  note("adjust_lr_fn", k.adjust_lr_fn.has_value());
  return names;
}

void check_group(const ParamGroup& group, const std::string& path, Report& report) {
  try {
    Pattern(group.pattern);
  } catch (const Error& error) {
    report.add(path + ".pattern", "", error.what());
  }
  const auto& kinds = optimizer_kinds();
  const auto kind = std::ranges::find(kinds, group.optimizer_name, &OptimizerKind::name);
  if (kind == kinds.end()) {
    std::vector<std::string_view> names;
    for (const OptimizerKind& k : kinds) names.push_back(k.name);
    report.add(
        path + ".optimizer_name", "'" + group.optimizer_name + "'",
        fmt::format("Optimizer {} not added. Optimizers: {}", group.optimizer_name, join(names)));
    return;
  }
  const OptimizerKwargs& k = group.optimizer_kwargs;
  const std::string kwargs = path + ".optimizer_kwargs";
  for (const std::string_view name : names_set(k))
    if (!kind->kwargs.contains(name))
      report.add(kwargs + "." + std::string(name), "",
                 fmt::format("{} has no such argument; it has: {}", kind->name,
                             join({kind->kwargs.begin(), kind->kwargs.end()})));
  if (k.betas &&
      (k.betas->size() != 2 || std::ranges::any_of(*k.betas, [](double b) { return b >= 1; })))
    report.add(kwargs + ".betas",
               leaf_text(const_cast<std::optional<std::vector<double>>*>(&k.betas)),
               "must be two numbers, each at least 0 and below 1");
  if (kind->name == "SGD" && k.nesterov.value_or(false) &&
      (k.momentum.value_or(0) <= 0 || k.dampening.value_or(0) != 0))
    report.add(kwargs + ".nesterov", "true",
               fmt::format("needs a momentum above 0 and dampening 0, got {} and {}",
                           k.momentum.value_or(0), k.dampening.value_or(0)));
  if (k.ns_coefficients && k.ns_coefficients->size() != 3)
    report.add(kwargs + ".ns_coefficients", "",
               fmt::format("must be 3 numbers, got {}", k.ns_coefficients->size()));
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
  int64_t num_muon = 0;
  for (size_t i = 0; i < o.param_groups.size(); ++i) {
    check_group(o.param_groups[i], fmt::format("optimizer.param_groups.{}", i), report);
    if (o.param_groups[i].optimizer_name == "DistMuon") ++num_muon;
  }
  if (num_muon > 1)
    report.add("optimizer.param_groups", "",
               fmt::format("only one group may use DistMuon, got {}", num_muon));
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
