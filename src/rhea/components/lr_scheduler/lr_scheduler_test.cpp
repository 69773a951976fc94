// Factors against the recorded schedules, and the corners.
#include "rhea/components/lr_scheduler/lr_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "rhea/base/mapped_file.h"

namespace rhea::lr_scheduler {
namespace {

TEST(LrSchedule, EqualsTheRecordedFactors) {
  const auto golden = nlohmann::json::parse(
      read_file(RHEA_SOURCE_DIR "/tests/data/golden/optim/lr_schedules.json"));
  size_t compared = 0;
  for (const auto& run : golden.at("warmup_decay")) {
    LrSchedulerConfig config;
    config.warmup_steps = run.at("warmup_steps");
    config.total_steps = run.at("total_steps").get<int64_t>();
    if (!run.at("decay_ratio").is_null()) config.decay_ratio = run.at("decay_ratio").get<double>();
    config.decay_type = run.at("decay_type");
    config.min_lr_factor = run.at("min_lr_factor");
    std::vector<std::string> warnings;
    const Schedule schedule = make_schedule(config, 1, warnings);
    int64_t step = 0;
    for (const double factor : run.at("factors")) {
      EXPECT_NEAR(schedule.factor(step), factor, 1e-12 * std::abs(factor))
          << run.dump().substr(0, 200) << " step " << step;
      ++step;
      ++compared;
    }
  }
  EXPECT_GT(compared, 100U);
}

TEST(LrSchedule, WarmupLongerThanTheRunWarnsAndRampsToOne) {
  LrSchedulerConfig config;
  config.warmup_steps = 600;
  std::vector<std::string> warnings;
  const Schedule schedule = make_schedule(config, 10, warnings);
  EXPECT_THAT(warnings,
              testing::ElementsAre(
                  "Warmup steps (600) exceed total steps (10). Adjusting warmup steps to 10."));
  EXPECT_DOUBLE_EQ(schedule.factor(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.factor(9), 1.0);
}

TEST(LrSchedule, NoWarmupAndNoDecayIsConstant) {
  LrSchedulerConfig config;
  config.warmup_steps = 0;
  config.decay_ratio = 0;
  std::vector<std::string> warnings;
  const Schedule schedule = make_schedule(config, 5, warnings);
  for (int64_t step = 0; step < 7; ++step) EXPECT_EQ(schedule.factor(step), 1.0);
}

}  // namespace
}  // namespace rhea::lr_scheduler
