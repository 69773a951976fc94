// The text of --help and of `rhea config --list`.
#pragma once
#include <iosfwd>

#include "rhea/config/registry.h"
#include "rhea/config/trainer_config.h"

namespace rhea::config {

// Every option by section: name, type, value in `config` (the default of this run) and meaning.
// Fields of the items of an empty list are shown with N for the number of the item.
void print_options(const TrainerConfig& config, std::ostream& out);

// Modules, their config functions and what each is.
void print_modules(const ConfigRegistry& registry, std::ostream& out);

}  // namespace rhea::config
