// Runs another program and collects what it prints.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rhea::plugin {

struct ProgramResult {
  int status = 0;      // exit code, or 128 + the signal that ended it
  std::string output;  // standard output and standard error, as they came
};

enum class Lifetime {
  its_own,
  ours,  // it and all that it started are killed when this process dies, however that happens
};

// Waits for its end. Throws Error where it cannot be started. Its standard input is empty.
ProgramResult run_program(const std::vector<std::string>& words,
                          Lifetime lifetime = Lifetime::its_own);

// An executable file: `name` itself where it has a slash, else the first of that name on PATH.
std::optional<std::filesystem::path> find_program(std::string_view name);

}  // namespace rhea::plugin
