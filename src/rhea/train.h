// The trainer as a library: what `rhea train` does with a config, for programs that make their own.
#pragma once
#include "rhea/base/error.h"
#include "rhea/config/trainer_config.h"

namespace rhea {

// Applies the overrides that the config names, checks it, builds everything that it describes and
// trains. The ranks are those of the environment (torchrun's RANK and WORLD_SIZE, Open MPI, PMIx,
// Slurm; none: one). Log lines go to standard output; files below config.dump_folder. Throws Error
// with every problem of the config before anything is allocated, ExitError for what ends a run. The
// result is what a program should exit with.
ExitCode train(TrainerConfig config);

}  // namespace rhea
