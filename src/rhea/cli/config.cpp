// `rhea config`: the resolved config of a run as JSON, the list of modules.
#include <iostream>

#include "rhea/base/log.h"
#include "rhea/cli/run_config.h"
#include "rhea/complete_model.h"

namespace rhea::cli {

int cmd_config(Args args) {
  log::set_enabled(false);  // standard output is the JSON's
  const auto complete = [](TrainerConfig& config) { return complete_model(config); };
  config::print_config(args, run_registry(), complete, std::cout, std::cerr);
  std::cout.flush();
  return 0;
}

}  // namespace rhea::cli
