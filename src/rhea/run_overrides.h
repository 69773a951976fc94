// The overrides of a run, between the making of its model's config and everything that reads it.
#pragma once
#include "rhea/config/trainer_config.h"

namespace rhea {

// Loads what config.override.imports names and replaces the nodes that it claims
// (config/override.h). A config is changed once: called again it does nothing, so both the commands
// and the Trainer call it. Throws Error naming entry, override and node; then nothing was changed.
void apply_overrides(TrainerConfig& config);

}  // namespace rhea
