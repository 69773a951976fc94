// What a config needs before it can be checked: the model's sizes and the overrides of the run.
#pragma once
#include <optional>

#include "rhea/config/trainer_config.h"
#include "rhea/config/validate.h"

namespace rhea {

// Sizes from config.json where the spec is deferred, and what the rules need to know of the model;
// its problems are also those of words that name nothing and, with `reads_files`, of data files.
struct CompleteOptions {
  bool reads_files = true;
  // Rows are cut to what the model's positions allow, with a log line.
  bool fits_length = false;
};
std::optional<config::ModelFacts> complete_model(TrainerConfig& config,
                                                 const CompleteOptions& options = {});

}  // namespace rhea
