// Lines of a long load or save, at times that the test makes.
#include "rhea/components/checkpoint/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace rhea::checkpoint {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class ProgressLines : public testing::Test {
 protected:
  // What step() writes `later` seconds after the start.
  std::string step_at(seconds later) {
    elapsed_ = later;
    testing::internal::CaptureStdout();
    progress_.step();
    return testing::internal::GetCapturedStdout();
  }
  std::atomic<seconds> elapsed_{seconds(0)};
  Progress progress_{"Loaded", 7,
                     [this] { return Progress::Clock::time_point(seconds(5) + elapsed_.load()); }};
};

TEST_F(ProgressLines, OneEveryTenSeconds) {
  EXPECT_EQ(step_at(seconds(0)), "");
  EXPECT_EQ(step_at(seconds(9)), "") << "the first ten seconds are not over";
  EXPECT_THAT(step_at(seconds(10)), HasSubstr("checkpoint - INFO - Loaded 3 of 7 tensors."));
  EXPECT_EQ(step_at(seconds(19)), "") << "nine seconds after the last line";
  EXPECT_THAT(step_at(seconds(45)), HasSubstr("Loaded 5 of 7 tensors."));
  EXPECT_EQ(step_at(seconds(54)), "") << "intervals that passed without a step are not made up";
  EXPECT_THAT(step_at(seconds(55)), HasSubstr("Loaded 7 of 7 tensors."));
}

TEST_F(ProgressLines, OfThreadsThatAreDueAtOnceOneWrites) {
  elapsed_ = seconds(10);
  testing::internal::CaptureStdout();
  std::vector<std::thread> threads;
  for (int i = 0; i < 7; ++i) threads.emplace_back([this] { progress_.step(); });
  for (auto& thread : threads) thread.join();
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

}  // namespace
}  // namespace rhea::checkpoint
