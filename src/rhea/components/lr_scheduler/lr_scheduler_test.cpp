// Factors against the recorded schedules, and the corners.
#include "rhea/components/lr_scheduler/lr_scheduler.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "tests/support/error_of.h"

namespace rhea::lr_scheduler {
namespace {

TEST(LrSchedule, EqualsTheRecordedFactors) {
  const auto golden =
      parse_json(read_file(RHEA_SOURCE_DIR "/tests/data/golden/optim/lr_schedules.json"));
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

// Every shape, with and without warm-up, decay and floor: a rate below zero would climb the loss.
TEST(LrSchedule, StaysWhereItEndedPastItsEnd) {
  for (const char* type : {"linear", "sqrt", "cosine"}) {
    for (const int64_t warmup : {0, 3, 10, 20}) {
      for (const std::optional<double> ratio :
           {std::optional<double>(), std::optional<double>(0.0), std::optional<double>(0.5)}) {
        for (const double floor : {0.0, 0.1, 1.0}) {
          LrSchedulerConfig config;
          config.warmup_steps = warmup;
          config.total_steps = 10;
          config.decay_ratio = ratio;
          config.decay_type = type;
          config.min_lr_factor = floor;
          std::vector<std::string> warnings;
          const Schedule schedule = make_schedule(config, 1000, warnings);
          const double end = schedule.decay == 0 ? 1.0 : floor;
          const std::string what =
              fmt::format("{} warmup {} decay {} floor {}", type, warmup, schedule.decay, floor);
          for (const int64_t step : {10, 11, 12, 19, 20, 31, 500, 999})
            EXPECT_DOUBLE_EQ(schedule.factor(step), end) << what << " step " << step;
          for (int64_t step = 0; step < 10; ++step) {
            EXPECT_GE(schedule.factor(step), 0) << what << " step " << step;
            EXPECT_LE(schedule.factor(step), 1) << what << " step " << step;
          }
          EXPECT_EQ(warnings.back(),
                    fmt::format("lr_scheduler.total_steps (10) is below training.steps (1000): "
                                "from step 11 on the learning rate stays at {} of its full value "
                                "(min_lr_factor is {})",
                                end, floor));
        }
      }
    }
  }
}

TEST(LrSchedule, ALongerScheduleThanTheRunIsNoMatter) {
  LrSchedulerConfig config;
  config.warmup_steps = 2;
  config.total_steps = 400;
  std::vector<std::string> warnings;
  make_schedule(config, 12, warnings);
  EXPECT_THAT(warnings, testing::IsEmpty());
}

// A config that a user's file derives, and a shape that reads it.
struct StairsConfig : LrSchedulerConfig {
  double num_stairs = 4;
};

TEST(LrSchedule, AnOutsideShapeDecaysAfterTheWarmup) {
  decays().add({"stairs",
                [](double p, const LrSchedulerConfig& config) {
                  const double n = dynamic_cast<const StairsConfig&>(config).num_stairs;
                  return 1 - std::floor(p * n) / n;
                }},
               "stairs.cpp");
  StairsConfig config;
  config.warmup_steps = 2;
  config.decay_type = "stairs";
  config.num_stairs = 2;
  std::vector<std::string> warnings;
  const Schedule schedule = make_schedule(config, 9, warnings);
  std::vector<double> factors;
  for (int64_t step = 0; step < 11; ++step) factors.push_back(schedule.factor(step));
  EXPECT_THAT(factors, testing::ElementsAre(0.5, 1, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0, 0));
}

TEST(LrSchedule, AShapeThatGivesNoNumberIsAnErrorThatNamesTheStep) {
  decays().add({"broken", [](double p, const LrSchedulerConfig&) { return p < 1 ? 1 : NAN; }},
               "broken.cpp");
  LrSchedulerConfig config;
  config.warmup_steps = 0;
  config.decay_type = "broken";
  std::vector<std::string> warnings;
  const Schedule schedule = make_schedule(config, 4, warnings);
  EXPECT_EQ(schedule.factor(3), 1);
  EXPECT_THAT(support::error_of([&] { schedule.factor(4); }), testing::HasSubstr("step 5 is nan"));
}

TEST(LrSchedule, AnUnknownShapeListsTheOthers) {
  LrSchedulerConfig config;
  config.decay_type = "exponential";
  std::vector<std::string> warnings;
  EXPECT_THAT(support::error_of([&] { make_schedule(config, 4, warnings); }),
              testing::HasSubstr(
                  "lr_scheduler.decay_type 'exponential' is unknown; known: linear, sqrt, cosine"));
}

}  // namespace
}  // namespace rhea::lr_scheduler
