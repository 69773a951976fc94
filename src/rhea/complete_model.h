// What a config needs before it can be checked: the model's sizes and the overrides of the run.
#pragma once
#include <optional>

#include "rhea/config/trainer_config.h"
#include "rhea/config/validate.h"

namespace rhea {

// Sizes from config.json where the spec is deferred, and what the rules need to know of the model;
// its problems are also those of words that name nothing and, with `reads_files`, of data files.
std::optional<config::ModelFacts> complete_model(TrainerConfig& config, bool reads_files = true);

}  // namespace rhea
