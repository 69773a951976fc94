// The parts of validate(), one file for each group of sections.
#pragma once
#include "rhea/config/validate.h"

namespace rhea::config {

// Choices and ranges that fields() states (validate.cpp).
void check_fields(const Config& config, Report& report);

// rules_batch.cpp
void check_training(const TrainerConfig& config, const WorldFacts& world, Report& report);
void check_parallelism(const TrainerConfig& config, const WorldFacts& world, Report& report);
void check_batch(const TrainerConfig& config, const WorldFacts& world, Report& report);

// rules_step.cpp: compile, executor and activation_checkpoint; optimizer and loss
void check_compile(const TrainerConfig& config, Report& report);
void check_optimizer(const TrainerConfig& config, const WorldFacts& world, Report& report);

// rules_run.cpp: checkpoint; dataloader and validator; profiler and debug
void check_checkpoint(const TrainerConfig& config, const WorldFacts& world, Report& report);
void check_data(const TrainerConfig& config, Report& report);
void check_observation(const TrainerConfig& config, const WorldFacts& world, Report& report);

// rules_scope.cpp: what this version cannot run
void check_scope(const TrainerConfig& config, const WorldFacts& world, Report& report);

}  // namespace rhea::config
