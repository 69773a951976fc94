// The run that every fault test disturbs.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "rhea/components/checkpoint/step_folder.h"
#include "tests/support/process.h"
#include "tests/support/run.h"
#include "tests/support/temp_folder.h"

namespace rhea {

namespace fs = std::filesystem;
using support::difference;
using support::Process;
using support::Words;
using testing::HasSubstr;
using testing::Not;

class FaultTest : public testing::Test {
 protected:
  // The small run, saving every 2 steps, as words of the program. Its learning rates do not depend
  // on `steps`, so that a run may go on.
  Words words(const std::string& dump, int steps = 12) const {
    return support::join({"train", "--dump_folder=" + (temp_.path() / dump).string(),
                          "--checkpoint.enable", "--checkpoint.interval=2",
                          "--checkpoint.no_last_save_model_only", "--lr_scheduler.total_steps=400"},
                         support::with_option(small_, fmt::format("--training.steps={}", steps)));
  }
  fs::path checkpoints(const std::string& dump) const { return temp_.path() / dump / "checkpoint"; }
  fs::path step_folder(const std::string& dump, int64_t step) const {
    return checkpoints(dump) / fmt::format("step-{}", step);
  }
  fs::path log() { return temp_.path() / fmt::format("log_{}", num_logs_++); }

  struct Outcome {
    int code = 0;
    std::string output;
  };
  Outcome run(const Words& all, const Process::Options& options = {}) {
    Process process(all, log(), options);
    const int code = process.wait();
    return {code, process.output()};
  }

  // Runs to the end and compares the last checkpoint, and what resuming needs beside it, with that
  // of a run that nothing disturbed.
  void expect_ends_as_undisturbed(const std::string& dump, int steps, const Words& more = {}) {
    const std::string calm = fmt::format("calm_{}", steps);
    if (!fs::exists(step_folder(calm, steps))) {
      const Outcome outcome = run(words(calm, steps));
      ASSERT_EQ(outcome.code, 0) << outcome.output;
    }
    const Outcome outcome = run(support::join(words(dump, steps), more));
    ASSERT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_EQ(difference(support::read_step(step_folder(calm, steps)),
                         support::read_step(step_folder(dump, steps))),
              "");
  }

  // Every step folder is whole, and nothing half written lies beside it.
  void expect_whole(const std::string& dump) {
    for (const auto& step : checkpoint::list_step_folders(checkpoints(dump)))
      EXPECT_EQ(step.content, checkpoint::StepFolder::Content::full)
          << step.path << ": " << step.problem;
    if (!fs::exists(checkpoints(dump))) return;
    for (const auto& entry : fs::directory_iterator(checkpoints(dump)))
      EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr(".tmp")));
  }

  int64_t latest_step(const std::string& dump) const {
    const auto steps = checkpoint::list_step_folders(checkpoints(dump));
    return steps.empty() ? -1 : steps.back().step;
  }

  support::TempFolder temp_;
  const Words small_ = support::small_run(temp_.path());
  int num_logs_ = 0;
};

}  // namespace rhea
