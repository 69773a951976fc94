// A folder of a user with files of his own, and `rhea` started in it.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "rhea/base/mapped_file.h"
#include "tests/support/process.h"
#include "tests/support/temp_folder.h"

namespace rhea {

// Two runs, one made from the other, in a file that also includes a header of the user.
inline constexpr const char* kRuns = R"(#include "my_sizes.h"
#include "rhea/plugin/plugin.h"

rhea::TrainerConfig small() {
  rhea::TrainerConfig c;
  c.training.steps = kSteps;
  return c;
}
rhea::TrainerConfig longer() {
  rhea::TrainerConfig c = small();
  c.training.steps *= 10;
  return c;
}
RHEA_CONFIG(small)
RHEA_CONFIG(longer, "ten times the steps")
)";

struct Ended {
  int code = 0;
  std::string output;
};

class PluginTest : public testing::Test {
 protected:
  const std::filesystem::path& folder() const { return folder_.path(); }
  std::filesystem::path cache() const { return folder() / "cache/plugins"; }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder() / name) << text;
  }
  void write_runs() const {
    write("my_sizes.h", "inline constexpr int kSteps = 7;\n");
    write("my_runs.cpp", kRuns);
  }

  support::Process::Options options(
      std::vector<std::pair<std::string, std::string>> environment = {}) const {
    environment.emplace_back("RHEA_CACHE_DIR", (folder() / "cache").string());
    support::Process::Options made;
    made.environment = std::move(environment);
    made.working_folder = folder();
    return made;
  }
  Ended rhea(const std::vector<std::string>& words,
             std::vector<std::pair<std::string, std::string>> environment = {}) const {
    support::Process process(words, folder() / "log.txt", options(std::move(environment)));
    const int code = process.wait();
    return {code, process.output()};
  }
  // The options of a run with their values as defaults, or why there are none.
  Ended config(const std::string& module, const std::string& function) const {
    return rhea({"train", "--help", "--module", module, "--config", function});
  }
  // Loads the module and prints its options: the shortest command whose log is on.
  Ended load(const std::string& module,
             std::vector<std::pair<std::string, std::string>> environment = {}) const {
    return rhea({"train", "--help", "--module", module}, std::move(environment));
  }

  // Libraries and records in the cache.
  std::vector<std::filesystem::path> cached(const std::string& extension) const {
    std::vector<std::filesystem::path> found;
    for (const auto& file : std::filesystem::directory_iterator(cache()))
      if (file.path().extension() == extension) found.push_back(file.path());
    return found;
  }

 private:
  support::TempFolder folder_;
};

// A line of `--help` says that training.steps is `steps`.
inline auto has_steps(int steps) {
  return testing::ContainsRegex("--training.steps +int +" + std::to_string(steps) + " ");
}

inline int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace rhea
