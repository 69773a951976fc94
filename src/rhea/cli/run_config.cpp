#include "rhea/cli/run_config.h"

#include <algorithm>
#include <iostream>

#include "recipes/recipes.h"
#include "rhea/base/log.h"
#include "rhea/complete_model.h"
#include "rhea/component_rules.h"
#include "rhea/config/help.h"
#include "rhea/plugin/runs.h"
#include "rhea/run_overrides.h"

namespace rhea::cli {

config::ConfigRegistry run_registry() {
  config::ConfigRegistry registry = recipes::builtin_registry();
  registry.set_finder(plugin::find_runs);
  registry.set_import_loader(load_imports);
  return registry;
}

TrainerConfig run_config(Args args, int64_t world_size) {
  return config::load_or_throw(args, run_registry(), {.world_size = world_size},
                               [](TrainerConfig& config) { return complete_model(config); });
}

TrainerConfig plan_config(Args args) {
  const bool has_length = std::ranges::any_of(args, [](const std::string& word) {
    return word.starts_with("--training.seq_len") || word.starts_with("--training.seq-len");
  });
  const auto one_rank = [&](TrainerConfig& config) {
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
    return complete_model(config, {.reads_files = false, .fits_length = !has_length});
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
