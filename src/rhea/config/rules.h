// The parts of validate(), one file for each group of sections.
#pragma once
#include "rhea/config/validate.h"

namespace rhea::config {

void check_fields(const TrainerConfig& config,
                  Report& report);  // choices and ranges of every field
void check_training(const TrainerConfig& config, const WorldFacts& world,
                    Report& report);  // training, paths
void check_parallelism(const TrainerConfig& config, const WorldFacts& world, Report& report);
void check_batch(const TrainerConfig& config, const WorldFacts& world, Report& report);
void check_compile(const TrainerConfig& config,
                   Report& report);  // compile, executor, activation_checkpoint
void check_optimizer(const TrainerConfig& config, const WorldFacts& world,
                     Report& report);  // optimizer, lr_scheduler, loss
void check_checkpoint(const TrainerConfig& config, const WorldFacts& world, Report& report);
void check_data(const TrainerConfig& config, Report& report);  // dataloader, validator
void check_observation(const TrainerConfig& config, const WorldFacts& world,
                       Report& report);  // profiler, debug
void check_scope(const TrainerConfig& config, const WorldFacts& world,
                 Report& report);  // what this version cannot run

}  // namespace rhea::config
