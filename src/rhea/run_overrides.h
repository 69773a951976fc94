// The overrides of a run, between the making of its model's config and everything that reads it.
#pragma once
#include <string>
#include <vector>

#include "rhea/config/trainer_config.h"

namespace rhea {

// Loads what config.override.imports names and replaces the nodes that it claims
// (config/override.h). A config is changed once: called again it does nothing, so both the commands
// and the Trainer call it. Throws Error naming entry, override and node; then nothing was changed.
void apply_overrides(TrainerConfig& config);

// Only loads the files of override.imports, so that what they register has names. Throws Error as
// apply_overrides() does for entries that cannot be found.
void load_imports(const std::vector<std::string>& imports);

}  // namespace rhea
