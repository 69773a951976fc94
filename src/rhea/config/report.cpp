// Text of the problems that a check of the config found.
#include "rhea/config/report.h"

#include "rhea/base/error.h"

namespace rhea::config {

std::string to_string(const Problem& problem) {
  if (problem.path.empty()) return problem.reason;
  if (problem.value.empty()) return fmt::format("{}: {}", problem.path, problem.reason);
  return fmt::format("{} = {}: {}", problem.path, problem.value, problem.reason);
}

void Report::append(const Report& other) {
  problems.insert(problems.end(), other.problems.begin(), other.problems.end());
  warnings.insert(warnings.end(), other.warnings.begin(), other.warnings.end());
}

std::string Report::text() const {
  std::string out = problems.size() == 1
                        ? "The configuration has 1 problem:"
                        : fmt::format("The configuration has {} problems:", problems.size());
  for (const Problem& problem : problems) out += "\n  " + to_string(problem);
  return out;
}

void Report::raise() const {
  if (!ok()) throw Error(text());
}

}  // namespace rhea::config
