// kill -9 at random moments: every restart finds a whole checkpoint, and the weights come out as if
// nothing had happened.
#include <chrono>
#include <random>
#include <thread>

#include "tests/faults/fault_test.h"

namespace rhea {
namespace {

constexpr int kNumKills = 30;
constexpr int kSteps = 60;

using Kill = FaultTest;

TEST_F(Kill, ThirtyRandomMoments) {
  std::mt19937 random(20261129);
  std::uniform_int_distribution<int> microseconds(0, 60'000);
  int num_kills = 0, num_resumed = 0;
  for (int life = 0; num_kills < kNumKills; ++life) {
    const std::string dump = fmt::format("life_{}", life);
    // Every other life writes in the background.
    const Words how = {"--checkpoint.keep_latest_k=3", life % 2 == 0
                                                           ? "--checkpoint.async_mode=disabled"
                                                           : "--checkpoint.async_mode=async"};
    const Words life_words = support::join(words(dump, kSteps), how);
    bool ended = false;
    while (!ended && num_kills < kNumKills) {
      Process process(life_words, log());
      // Most moments lie in the loop, one in eight in the start-up and the load.
      if (random() % 8 != 0) process.wait_for("Training starts at");
      std::this_thread::sleep_for(std::chrono::microseconds(microseconds(random)));
      process.signal(SIGKILL);
      const int code = process.wait();
      ended = code == 0;
      ASSERT_TRUE(ended || code == 128 + SIGKILL) << code << "\n" << process.output();
      if (!ended) ++num_kills;
      if (process.output().find("Loading the checkpoint from") != std::string::npos) ++num_resumed;
      // A folder under its final name is whole at any moment.
      for (const auto& step : checkpoint::list_step_folders(checkpoints(dump)))
        ASSERT_EQ(step.content, checkpoint::StepFolder::Content::full)
            << step.path << ": " << step.problem;
    }
    expect_ends_as_undisturbed(dump, kSteps, how);
    expect_whole(dump);
  }
  EXPECT_GT(num_resumed, kNumKills / 4) << "most kills came before the first checkpoint";
}

// The claim on the folder ends with the first run.
TEST_F(Kill, ASecondRunInTheSameFolderIsRefused) {
  Process first(words("shared", 400), log());
  ASSERT_TRUE(first.wait_for("step:  3")) << first.output();
  const Outcome second = run(words("shared", 400));
  EXPECT_EQ(second.code, 2);
  EXPECT_THAT(second.output, HasSubstr("another run that has not ended saves there"));
  first.signal(SIGKILL);
  first.wait();
  const Outcome third = run(words("shared", 4));
  EXPECT_EQ(third.code, 0) << third.output;
  EXPECT_THAT(third.output, HasSubstr("Loading the checkpoint from"));
  expect_whole("shared");
}

}  // namespace
}  // namespace rhea
