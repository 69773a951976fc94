// Words of a command that has plain options, through CLI11.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>

#include "rhea/cli/commands.h"

namespace rhea::cli {

// Fills the app's variables. 0 when help was printed; Error with CLI11's message for wrong words.
std::optional<int> parse(CLI::App& app, Args args);

// Checks of a value; NaN lies in no range.
CLI::Validator integer_in(int64_t low, int64_t high);
CLI::Validator number_in(double low, double high);

}  // namespace rhea::cli
