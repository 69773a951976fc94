// Words of a run that name rows of the components' tables: known before anything is allocated.
#pragma once
#include <iosfwd>
#include <vector>

#include "rhea/config/report.h"
#include "rhea/config/trainer_config.h"

namespace rhea {

// Optimizers and their arguments, the shape of the decay, metric sinks, the kind of tokenizer; with
// `reads_files` also data sets and their files.
void check_components(const TrainerConfig& config, bool reads_files,
                      std::vector<config::Problem>& problems);

// Every table with the names it holds, and the file of those that did not come with the program.
void print_components(std::ostream& out);

}  // namespace rhea
