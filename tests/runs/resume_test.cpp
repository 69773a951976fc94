// What a run takes from a checkpoint: all of it, or what exclude_from_loading leaves.
#include "tests/runs/run_test.h"

namespace rhea {
namespace {

class Resume : public RunTest {
 protected:
  static Words saving(int steps) {
    return {"--checkpoint.enable",
            "--checkpoint.interval=4",
            "--lr_scheduler.total_steps=20",
            "--lr_scheduler.warmup_steps=3",
            "--lr_scheduler.decay_ratio=None",
            fmt::format("--training.steps={}", steps)};
  }
  // Rates and tokens of the steps that a run of `words` logs, from the first of them on.
  std::vector<support::StepRow> rows(const Words& words) {
    fs::remove(dump() / "metrics/rank_0.jsonl");
    const Outcome outcome = train(words);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    output_ = outcome.output;
    return support::read_rows(dump());
  }
  static Words excluding(const char* parts) {
    return support::join(saving(8), {std::string("--checkpoint.exclude_from_loading=") + parts});
  }
  std::string output_;
};

TEST_F(Resume, EachExcludedPartStartsFreshAndTheLogSaysWhich) {
  const auto calm = rows(saving(4));
  ASSERT_EQ(calm.size(), 4U);
  const auto first_row = [&](const char* parts) {
    fs::remove_all(dump() / "checkpoint/step-8");
    fs::remove_all(dump() / "checkpoint/export");
    const auto found = rows(*parts == '\0' ? saving(8) : excluding(parts));
    return found.empty() ? support::StepRow{} : found.front();
  };

  const auto all = first_row("");
  EXPECT_EQ(all.step, 5);
  EXPECT_LT(all.lr, calm[3].lr);
  EXPECT_THAT(output_, HasSubstr("Taking weights, optimizer, schedule, data position, step.\n"));

  const auto schedule = first_row("lr_scheduler");
  EXPECT_EQ(schedule.step, 5);
  EXPECT_EQ(schedule.lr, calm[0].lr) << "the warm-up starts again";
  EXPECT_EQ(schedule.loss, all.loss) << "same weights, same data";
  EXPECT_THAT(output_, HasSubstr("Taking weights, optimizer, data position, step; starting fresh, "
                                 "by checkpoint.exclude_from_loading: schedule.\n"));

  const auto optimizer = first_row("optimizer,lr_scheduler");
  EXPECT_EQ(optimizer.lr, calm[0].lr);
  EXPECT_EQ(optimizer.loss, all.loss);
  EXPECT_THAT(output_, HasSubstr("starting fresh, by checkpoint.exclude_from_loading: optimizer, "
                                 "schedule.\n"));

  const auto data = first_row("dataloader");
  EXPECT_EQ(data.lr, all.lr);
  EXPECT_NE(data.loss, all.loss) << "the data begin again";
  EXPECT_THAT(output_, HasSubstr("by checkpoint.exclude_from_loading: data position.\n"));

  const auto step = first_row("train_state");
  EXPECT_EQ(step.step, 1);
  EXPECT_EQ(step.tokens_seen, calm[0].tokens_seen);
  EXPECT_EQ(step.lr, all.lr) << "the schedule goes on";
  EXPECT_THAT(output_, HasSubstr("by checkpoint.exclude_from_loading: step.\n"));
}

// The schedule's own count is what is saved: after a fresh schedule, a second resume goes on in it.
TEST_F(Resume, AFreshScheduleIsResumedAsItIs) {
  const auto calm = rows(saving(4));
  fs::remove_all(dump() / "checkpoint/export");
  rows(excluding("lr_scheduler"));
  const auto third = rows(saving(9));
  ASSERT_EQ(third.size(), 1U);
  EXPECT_EQ(third[0].step, 9);
  EXPECT_LT(third[0].lr, calm[3].lr);
  const auto straight = rows(support::join(saving(5), {"--checkpoint.folder=other"}));
  EXPECT_EQ(third[0].lr, straight[4].lr) << "step 9 is step 5 of its schedule";
}

TEST_F(Resume, InitialLoadSaysWhatItTakes) {
  rows(saving(4));
  const std::string from =
      "--checkpoint.initial_load_path=" + (dump() / "checkpoint/step-4").string();
  const auto other = [&](const char* folder, const Words& more) {
    return rows(support::join(
        support::join(saving(6), {from, std::string("--checkpoint.folder=") + folder}), more));
  };
  EXPECT_EQ(other("a", {}).front().step, 1);
  EXPECT_THAT(output_, HasSubstr("Taking only the weights.\n"));
  EXPECT_EQ(other("b", {"--checkpoint.no_initial_load_model_only"}).front().step, 5);
  EXPECT_THAT(output_, HasSubstr("Taking weights, optimizer, schedule, data position, step.\n"));
  EXPECT_EQ(other("c", {"--checkpoint.no_initial_load_model_only",
                        "--checkpoint.exclude_from_loading=dataloader"})
                .front()
                .step,
            5);
  EXPECT_THAT(output_, HasSubstr("Taking weights, optimizer, schedule, step; starting fresh, by "
                                 "checkpoint.exclude_from_loading: data position.\n"));
}

TEST_F(Resume, TheSeedOfTheCheckpointIsTakenUnlessOneIsGiven) {
  rows(saving(4));
  const Words unseeded = train_words(saving(5));
  const auto without_seed = [&](Words words) {
    std::erase(words, "--debug.seed=7");
    return words;
  };
  const Outcome resumed = run(without_seed(unseeded));
  EXPECT_THAT(resumed.output, HasSubstr("debug.seed is not set; taken from the checkpoint: 7\n"));
  EXPECT_THAT(resumed.output, Not(HasSubstr("drawn")));
  const Outcome other = train(support::join(saving(6), {"--debug.seed=8"}));
  EXPECT_THAT(other.output, HasSubstr("debug.seed 8 replaces 7, the one of the checkpoint\n"));
  const Outcome fresh =
      run(without_seed(train_words(support::join(saving(1), {"--checkpoint.folder=other"}))));
  EXPECT_THAT(fresh.output, HasSubstr("debug.seed is not set; drawn: "));
}

TEST_F(Resume, AFinishedRunSaysThatNothingIsLeft) {
  rows(saving(4));
  for (const int steps : {2, 4}) {
    EXPECT_TRUE(rows(saving(steps)).empty());
    EXPECT_THAT(output_, HasSubstr(fmt::format("WARNING - Nothing to train: the checkpoint is at "
                                               "step 4 and training.steps is {};",
                                               steps)));
    EXPECT_THAT(output_, Not(HasSubstr("Training starts at step")));
  }
}

}  // namespace
}  // namespace rhea
