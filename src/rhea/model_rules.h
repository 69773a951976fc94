// Rules about a run that need its model or its graph passes: known before anything is allocated.
#pragma once
#include <vector>

#include "rhea/config/report.h"
#include "rhea/config/trainer_config.h"

namespace rhea {

// Names of passes in debug.disable_passes.
void check_passes(const TrainerConfig& config, std::vector<config::Problem>& problems);

// Whether the sizes and parts of the model and the loss allow a trace of them: none is 0 or empty,
// and they agree with each other. Problems that the ranges of single fields do not show are added.
bool can_be_traced(TrainerConfig& config, std::vector<config::Problem>& problems);

// The model of config.model_spec, which can be traced, against the options: length and RoPE,
// patterns of param groups, texts of force_recompute_mm_shapes_by_fqns, Hugging Face names where
// they are needed, and the config.json beside the weights that are to be loaded.
void check_model(const TrainerConfig& config, std::vector<config::Problem>& problems);

}  // namespace rhea
