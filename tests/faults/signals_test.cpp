// SIGTERM and its relatives at bad times; the limit of wall time.
#include <chrono>
#include <thread>

#include "tests/faults/fault_test.h"

namespace rhea {
namespace {

constexpr int kLastStep = 80;

class Signals : public FaultTest {
 protected:
  // Signals once the output holds `moment`; the run must save that step whole and end with 0, and
  // go on from there as if never stopped.
  void expect_saved(const std::string& dump, const std::string& moment, int signal_number,
                    const std::string& name, int times = 1, const Words& more = {}) {
    Process process(support::join(words(dump, kLastStep), more), log());
    ASSERT_TRUE(process.wait_for(moment)) << process.output();
    for (int i = 0; i < times; ++i) {
      process.signal(signal_number);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(process.wait(), 0) << process.output();
    const std::string output = process.output();
    const int64_t step = latest_step(dump);
    EXPECT_THAT(output, HasSubstr(fmt::format("{} received; saving step {}", name, step)));
    EXPECT_THAT(output, Not(HasSubstr("Training completed")));
    EXPECT_LT(step, kLastStep);
    expect_whole(dump);
    expect_ends_as_undisturbed(dump, kLastStep, more);
  }
};

TEST_F(Signals, DuringStartUp) {
  expect_saved("start", "Building device mesh", SIGTERM, "SIGTERM");
}

TEST_F(Signals, DuringAStep) { expect_saved("step", "step:  3", SIGTERM, "SIGTERM"); }

TEST_F(Signals, User1IsTheSame) { expect_saved("usr1", "step:  3", SIGUSR1, "SIGUSR1"); }

TEST_F(Signals, OneInterruptIsTheSame) { expect_saved("int", "step:  3", SIGINT, "SIGINT"); }

TEST_F(Signals, DuringASave) {
  expect_saved("save", "Saving the checkpoint.", SIGTERM, "SIGTERM");
  expect_saved("staged", "Staging the checkpoint.", SIGTERM, "SIGTERM", 1,
               {"--checkpoint.async_mode=async"});
}

TEST_F(Signals, ASecondTermDoesNotSpoilTheSave) {
  expect_saved("twice", "step:  3", SIGTERM, "SIGTERM", 2);
  expect_saved("often", "Saving the checkpoint.", SIGTERM, "SIGTERM", 20);
}

// Validation of every step takes much longer than the step, so the signal falls into it.
TEST_F(Signals, DuringValidation) {
  const Words validation = {
      "--validator.enable", "--validator.freq=1", "--validator.steps=200",
      "--validator.dataloader.dataset=jsonl",
      "--validator.dataloader.dataset_path=" + (temp_.path() / "text.jsonl").string()};
  Process process(support::join(words("validation"), validation), log());
  ASSERT_TRUE(process.wait_for("step:  1  loss:")) << process.output();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(), 0);
  // It ends the validation first.
  EXPECT_THAT(process.output(), HasSubstr("validate step:  1"));
  EXPECT_THAT(process.output(), HasSubstr("SIGTERM received; saving step 1"));
  expect_whole("validation");
  expect_ends_as_undisturbed("validation", 12);
}

TEST_F(Signals, WithoutCheckpointsNothingIsSaved) {
  const Words off =
      support::join({"train", "--dump_folder=" + (temp_.path() / "off").string()},
                    support::with_option(small_, fmt::format("--training.steps={}", kLastStep)));
  Process process(off, log());
  ASSERT_TRUE(process.wait_for("step:  3")) << process.output();
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(), 143);
  EXPECT_THAT(process.output(), HasSubstr("nothing was saved"));
  EXPECT_FALSE(fs::exists(checkpoints("off")));
}

TEST_F(Signals, TheSecondInterruptStopsAtOnce) {
  const Words validation = {
      "--validator.enable", "--validator.freq=1", "--validator.steps=100000",
      "--validator.dataloader.dataset=jsonl",
      "--validator.dataloader.dataset_path=" + (temp_.path() / "text.jsonl").string()};
  Process process(support::join(words("interrupt"), validation), log());
  ASSERT_TRUE(process.wait_for("step:  1  loss:")) << process.output();
  process.signal(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(process.running()) << "the first one waits for the end of the step";
  process.signal(SIGINT);
  EXPECT_EQ(process.wait(10), 130);
}

TEST_F(Signals, WallTimeSavesAndEndsWell) {
  const Words limit = {"--training.max_wall_time=1s"};
  const auto outcome = run(support::join(words("limit", 1'000'000), limit));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("training.max_wall_time (1s) is over"));
  EXPECT_THAT(outcome.output,
              HasSubstr(fmt::format("saving step {} and stopping", latest_step("limit"))));
  expect_whole("limit");
}

}  // namespace
}  // namespace rhea
