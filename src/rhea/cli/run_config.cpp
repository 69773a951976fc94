#include "rhea/cli/run_config.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "recipes/recipes.h"
#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/component_rules.h"
#include "rhea/config/help.h"
#include "rhea/model_rules.h"
#include "rhea/models/registry.h"
#include "rhea/nn/moe.h"
#include "rhea/plugin/loader.h"
#include "rhea/run_overrides.h"

namespace rhea::cli {

namespace {

// Paths of a recipe begin with ./tests/assets and are meant from the root of the source tree.
// Called from elsewhere, the program finds that root above its own file.
void find_asset(std::string& path) {
  namespace fs = std::filesystem;
  if (!path.starts_with("./tests/assets/") || fs::exists(path)) return;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (fs::path folder = program.parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    const fs::path candidate = (folder / path).lexically_normal();
    if (!fs::exists(candidate, error)) continue;
    path = candidate.string();
    return;
  }
}

}  // namespace

config::ConfigRegistry run_registry() {
  config::ConfigRegistry registry = recipes::builtin_registry();
  registry.set_finder(plugin::find_runs);
  registry.set_import_loader(load_imports);
  return registry;
}

std::optional<config::ModelFacts> complete_model(TrainerConfig& config, bool reads_files) {
  config::ModelFacts facts;
  find_asset(config.hf_assets_path);
  find_asset(config.hf_model);
  check_passes(config, facts.problems);
  const char* step = "model_spec";
  bool is_complete = false;
  try {
    models::complete_spec(config);
    step = "override.imports";
    apply_overrides(config);
    is_complete = true;
  } catch (const Error& error) {
    facts.problems.push_back({step, "", error.what()});
  }
  check_components(config, reads_files, facts.problems);
  if (!is_complete) return facts;
  const nn::Decoder::Config& model = models::decoder(config.model_spec);
  facts.n_layers = static_cast<int64_t>(model.layers.size());
  facts.vocab_size = model.vocab_size();
  if (model.layers.empty()) return facts;
  const nn::TransformerBlock::Config& block = *model.layers.front();
  if (const auto* attention = block.attention.as<nn::Attention::Config>()) {
    facts.n_heads = attention->qkv_linear->n_heads;
    facts.n_kv_heads = attention->qkv_linear->n_kv_heads;
  }
  facts.ffn_hidden_dim = block.feed_forward->hidden_dim();
  for (const auto& layer : model.layers)
    if (const auto* mixture = layer->feed_forward.as<nn::MoE::Config>())
      facts.num_experts = mixture->router->num_experts;
  check_model(config, facts.problems);
  return facts;
}

TrainerConfig run_config(Args args, int64_t world_size) {
  return config::load_or_throw(args, run_registry(), {.world_size = world_size},
                               [](TrainerConfig& config) { return complete_model(config); });
}

TrainerConfig plan_config(Args args) {
  const auto one_rank = [](TrainerConfig& config) {
    ParallelismConfig& p = config.parallelism;
    const config::Degrees alone;
    const bool parallel = p.data_parallel_replicate_degree != 1 ||
                          p.data_parallel_shard_degree > 1 || p.tensor_parallel_degree != 1 ||
                          p.context_parallel_degree != 1 || p.pipeline_parallel_degree != 1 ||
                          p.expert_parallel_degree != 1;
    if (parallel) log::info("plan", "Planning one rank: all degrees of parallelism are taken as 1");
    p.data_parallel_replicate_degree = alone.dp_replicate;
    p.data_parallel_shard_degree = alone.dp_shard;
    p.tensor_parallel_degree = alone.tp;
    p.context_parallel_degree = alone.cp;
    p.pipeline_parallel_degree = alone.pp;
    p.expert_parallel_degree = alone.ep;
    return complete_model(config, /*reads_files=*/false);
  };
  return config::load_or_throw(args, run_registry(), {.reads_files = false}, one_rank);
}

bool print_run_help(Args args, std::string_view usage) {
  if (std::ranges::find(args, "--help") == args.end() &&
      std::ranges::find(args, "-h") == args.end())
    return false;
  const config::ConfigRegistry registry = run_registry();
  const config::CommandLine line = config::parse_command_line(args, registry);
  line.report.raise();
  std::cout << usage << '\n';
  config::print_options(line.config, std::cout);
  std::cout << "\nModules and their config functions:\n";
  config::print_modules(registry, std::cout);
  std::cout << "\nWords of the tables that a module can add to:\n";
  print_components(std::cout);
  std::cout.flush();
  return true;
}

}  // namespace rhea::cli
