// rhea plan: what a run would need and do, without allocating or training.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>

#include "rhea/components/train_step/train_step.h"
#include "rhea/config/trainer_config.h"

namespace rhea {

struct PlanOptions {
  bool all_nodes = false;  // one line per node instead of one per kind
  int num_threads = 0;     // 0: the cores of this process
};

// One line for each option that lowers the memory of a step which exceeds `limit` bytes.
std::string what_lowers_memory(const TrainerConfig& config, const train_step::StepMemory& memory,
                               int64_t limit);

// Prints parameters, FLOPs, memory by class in bytes, the kernels with the reason of each choice,
// the time at the limit of this machine and the predicted time, the largest values by FQN, and
// whether it fits.
void print_plan(const TrainerConfig& config, const PlanOptions& options, std::ostream& out);

}  // namespace rhea
