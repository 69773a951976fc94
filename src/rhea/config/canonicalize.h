// One spelling for every choice, whoever wrote it.
#pragma once
#include "rhea/config/trainer_config.h"

namespace rhea::config {

// Choices get the spelling of the table of options (`memory-budget` becomes memory_budget, `gpipe`
// GPipe), the data set its lower case, and the validator's loader the `infinite` that its number of
// steps asks for.
void canonicalize(TrainerConfig& config);

}  // namespace rhea::config
