// A small run in a folder of its own, and what it prints.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "rhea/base/mapped_file.h"
#include "tests/support/process.h"
#include "tests/support/run.h"
#include "tests/support/temp_folder.h"

namespace rhea {

namespace fs = std::filesystem;
using support::Words;
using testing::HasSubstr;
using testing::Not;

class RunTest : public testing::Test {
 protected:
  struct Outcome {
    int code = 0;
    std::string output;
  };
  Outcome run(const Words& words, const support::Process::Options& options = {}) {
    support::Process process(words, temp_.path() / fmt::format("log_{}", num_logs_++), options);
    const int code = process.wait();
    return {code, process.output()};
  }
  // `rhea train` of the small run with these words more; an option of the small run is replaced.
  Outcome train(const Words& more, const support::Process::Options& options = {}) {
    return run(train_words(more), options);
  }
  Words train_words(const Words& more) const {
    Words all = support::join({"train", "--dump_folder=" + dump().string()}, small_);
    for (const std::string& word : more) {
      const std::string name = word.substr(0, word.find('=') + 1);
      std::erase_if(all,
                    [&](const std::string& old) { return !name.empty() && old.starts_with(name); });
      all.push_back(word);
    }
    return all;
  }
  fs::path dump() const { return temp_.path() / "out"; }

  support::TempFolder temp_;
  const Words small_ = support::small_run(temp_.path());
  int num_logs_ = 0;
};

}  // namespace rhea
