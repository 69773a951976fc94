// The config of a run from the words of a command: what train, plan and config have in common.
#pragma once
#include <optional>

#include "rhea/cli/commands.h"
#include "rhea/config/load.h"

namespace rhea::cli {

// The built-in runs; a module of another name is looked for among the user's files.
config::ConfigRegistry run_registry();

// --module, --config and the options on top, checked for `world_size` ranks. Throws Error with all
// problems; warnings are logged.
TrainerConfig run_config(Args args, int64_t world_size);

// The same for a plan of one rank, which reads no files: degrees of parallelism are set to 1, and a
// length of rows that the words do not ask for is cut to what the model allows, with log lines that
// say so.
TrainerConfig plan_config(Args args);

// --help of such a command: `usage` and then every option with the values of the line as defaults.
// False where the words do not ask for help.
bool print_run_help(Args args, std::string_view usage);

}  // namespace rhea::cli
