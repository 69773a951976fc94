// Command line of a run: --module M --config F --section.option value ... to a TrainerConfig.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "rhea/config/registry.h"
#include "rhea/config/report.h"
#include "rhea/config/trainer_config.h"

namespace rhea::config {

struct CommandLine {
  TrainerConfig config;
  std::string module;              // as given; empty where absent
  std::string function;            // as given; empty where absent
  bool help = false;               // --help or -h was there
  bool has_recipe = false;         // config comes from a config function, not from the defaults
  std::vector<std::string> given;  // paths of the options on the line
  Report report;  // everything that is wrong with the line itself; see validate() for the values
};

// Builds the config of `--module` and `--config` and puts the options on top. Never throws for what
// is on the line: all problems are in the report, and the config then holds what could be
// understood. With `--help` a missing module is no problem: the config is the default tree.
CommandLine parse_command_line(std::span<const std::string> args, const ConfigRegistry& registry);

// Only the options, onto a config that is already there; spelling is made canonical. Returns the
// paths of the options that were given. `load` gets what override.imports names before anything
// else is read.
std::vector<std::string> apply_options(std::span<const std::string> args, TrainerConfig& config,
                                       Report& report, const ImportLoader& load = {});

}  // namespace rhea::config
