// `rhea config`: the resolved config of a run as JSON, the list of modules.
#include <iostream>

#include "recipes/recipes.h"
#include "rhea/cli/run_config.h"

namespace rhea::cli {

int cmd_config(Args args) {
  const auto complete = [](TrainerConfig& config) { return complete_model(config); };
  config::print_config(args, recipes::builtin_registry(), complete, std::cout, std::cerr);
  std::cout.flush();
  return 0;
}

}  // namespace rhea::cli
