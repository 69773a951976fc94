// `rhea plan`
#include "rhea/plan.h"

#include <algorithm>
#include <iostream>

#include "rhea/base/log.h"
#include "rhea/cli/commands.h"
#include "rhea/cli/run_config.h"

namespace rhea::cli {

int cmd_plan(Args args) {
  if (print_run_help(
          args,
          "usage: rhea plan --module M --config F [--all_nodes] [--section.option value ...]\n"
          "Plans one rank: parallel degrees of the recipe are set to 1.\n"))
    return 0;
  PlanOptions options;
  std::vector<std::string> words;
  for (const std::string& word : args) {
    if (word == "--all_nodes" || word == "--all-nodes")
      options.all_nodes = true;
    else
      words.push_back(word);
  }
  const TrainerConfig config = plan_config(words);
  options.num_threads = static_cast<int>(config.executor.num_threads);
  print_plan(config, options, std::cout);
  std::cout.flush();
  return 0;
}

}  // namespace rhea::cli
