// Parsing of the commands that have a fixed set of options (CLI11); `train` and its like have their
// own parser, made from the config tree.
#pragma once
#include "rhea/cli/commands.h"

namespace CLI {
class App;
}

namespace rhea::cli {

// Parses the words into the variables that `app` is bound to. False: help was asked for and
// printed, there is nothing to run. Throws Error for words that do not parse.
bool parse_options(CLI::App& app, Args args);

}  // namespace rhea::cli
