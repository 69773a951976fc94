// `rhea train`
#include "rhea/base/log.h"
#include "rhea/cli/commands.h"
#include "rhea/cli/run_config.h"
#include "rhea/config/launch_env.h"
#include "rhea/trainer.h"

namespace rhea::cli {

int cmd_train(Args args) {
  const auto start = Trainer::Clock::now();
  if (print_run_help(args, "usage: rhea train --module M --config F [--section.option value ...]"))
    return 0;
  const auto launch = config::detect_launch();
  log::set_enabled(launch.logs());
  Trainer trainer(run_config(args, launch.world_size), start);
  return static_cast<int>(trainer.train());
}

}  // namespace rhea::cli
