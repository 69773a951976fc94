// Report: everything that is wrong with a config, collected before anything is allocated.
#pragma once
#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

namespace rhea::config {

// One mistake of the user.
struct Problem {
  std::string path;       // "training.steps"; empty where no field is to blame
  std::string value;      // as it was given; may be empty
  std::string reason;     // what is wrong, what is needed
  bool anywhere = false;  // on every machine and with every number of ranks
};

// "training.steps = 0: must be at least 1"
std::string to_string(const Problem& problem);

struct Report {
  std::vector<Problem> problems;
  std::vector<std::string> warnings;

  bool ok() const { return problems.empty(); }
  void add(std::string path, std::string value, std::string reason) {
    problems.push_back({std::move(path), std::move(value), std::move(reason)});
  }
  // A problem that no machine and no number of ranks mends.
  void add_anywhere(std::string path, std::string value, std::string reason) {
    problems.push_back({std::move(path), std::move(value), std::move(reason), true});
  }
  void warn(std::string text) { warnings.push_back(std::move(text)); }
  void append(const Report& other);
  // All problems, one a line, under a headline with their number.
  std::string text() const;
  // Throws Error with text() unless ok().
  void raise() const;
};

}  // namespace rhea::config
