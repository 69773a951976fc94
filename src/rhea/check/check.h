// rhea check: what came from outside against what it replaces, before anyone trains with it.
#pragma once
#include <iosfwd>

#include "rhea/config/trainer_config.h"

namespace rhea::check {

// `config` is complete, its plugins are loaded and its overrides applied. Compares every node that
// an override replaced and every op of the run for which a kernel was added with what they replace,
// on the shapes of the run and on odd ones, in f32 and bf16; runs the contract of the op table on
// rows and kernels from outside. Prints what was found; true where everything is within its
// tolerance. Throws Error where the run has nothing from outside.
bool run_check(const TrainerConfig& config, std::ostream& out);

}  // namespace rhea::check
