// One run that a module has: what `--config NAME` finds.
#pragma once
#include <functional>
#include <string>

#include "rhea/config/trainer_config.h"

namespace rhea::config {

// Makes the config of a run; what it throws ends the command.
using ConfigFunction = std::function<TrainerConfig()>;

// A config function under its name.
struct ConfigEntry {
  std::string name;     // what --config takes
  std::string help;     // one line
  ConfigFunction make;  // called once for a run
};

}  // namespace rhea::config
