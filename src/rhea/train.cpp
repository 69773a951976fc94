#include "rhea/train.h"

#include "rhea/base/log.h"
#include "rhea/complete_model.h"
#include "rhea/config/command_line.h"
#include "rhea/config/launch_env.h"
#include "rhea/config/validate.h"
#include "rhea/trainer.h"

namespace rhea {

ExitCode train(TrainerConfig config) {
  const auto start = Trainer::Clock::now();
  const auto launch = config::detect_launch();
  log::set_enabled(launch.logs());
  config::Report report;
  config::apply_options({}, config, report);  // spelling as that of a command line
  config::WorldFacts world{.world_size = launch.world_size};
  world.model = complete_model(config);
  report.append(config::validate(config, world));
  for (const std::string& warning : report.warnings) log::warning("config", "{}", warning);
  report.raise();
  return Trainer(std::move(config), start).train();
}

}  // namespace rhea
