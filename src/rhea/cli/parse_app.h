// Words of a command that has plain options, through CLI11.
#pragma once
#include <CLI/CLI.hpp>
#include <optional>

#include "rhea/cli/commands.h"

namespace rhea::cli {

// Fills the app's variables. 0 when help was printed; Error with CLI11's message for wrong words.
std::optional<int> parse(CLI::App& app, Args args);

}  // namespace rhea::cli
