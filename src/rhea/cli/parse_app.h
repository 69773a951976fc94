// Words of a command that has plain options, through CLI11.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>

#include "rhea/cli/commands.h"

namespace rhea::cli {

// Fills the app's variables. 0 when help was printed; Error with CLI11's message for wrong words.
std::optional<int> parse(CLI::App& app, Args args);

// --dataset, --dataset_path and --text_field of the commands that read text.
void add_dataset_options(CLI::App& app, std::string& dataset, std::optional<std::string>& path,
                         std::string& text_field);

// --threads of the commands that compute.
void add_threads_option(CLI::App& app, int& threads);

// Checks of a value; NaN lies in no range.
CLI::Validator integer_in(int64_t low, int64_t high);
CLI::Validator number_in(double low, double high);

}  // namespace rhea::cli
