// What every command that needs a run's config does with its words: parse, complete, check, then go
// on or say it all.
#pragma once
#include <functional>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>

#include "rhea/config/command_line.h"
#include "rhea/config/validate.h"

namespace rhea::config {

// Puts into the config what only the layers above know (sizes from config.json) and tells the rules
// about the model. What it throws becomes one of the problems.
using CompleteModel = std::function<std::optional<ModelFacts>(TrainerConfig&)>;

// The line with everything that is wrong with it and with its values in `world`. Values
// are not checked where the config function is not known: the default tree says nothing about the
// run.
CommandLine load(std::span<const std::string> args, const ConfigRegistry& registry,
                 const WorldFacts& world, const CompleteModel& complete);

// load(), warnings to the log, problems thrown as one Error.
TrainerConfig load_or_throw(std::span<const std::string> args, const ConfigRegistry& registry,
                            const WorldFacts& world, const CompleteModel& complete);

// `rhea config`: the resolved tree of --module and --config as JSON; --list: modules and functions;
// --help: options. Problems of the values that another machine or number of ranks would not have go
// to `notes` and do not stop it; all others are thrown after the tree was printed.
void print_config(std::span<const std::string> args, const ConfigRegistry& registry,
                  const CompleteModel& complete, std::ostream& out, std::ostream& notes);

}  // namespace rhea::config
