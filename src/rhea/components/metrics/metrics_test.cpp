// Event files and JSON lines, read back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/base/log.h"
#include "rhea/base/mapped_file.h"
#include "rhea/base/status_line.h"
#include "rhea/components/metrics/jsonl.h"
#include "rhea/components/metrics/step_metrics.h"
#include "rhea/components/metrics/tensorboard.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace rhea::metrics {
namespace {

namespace fs = std::filesystem;

class Metrics : public testing::Test {
 protected:
  support::TempFolder temporary_;
  fs::path folder_ = temporary_.path() / "dump";
};

TEST_F(Metrics, EventsReadBack) {
  EventWriter writer(folder_, 1700000000.25);
  EXPECT_THAT(writer.path().filename().string(),
              testing::StartsWith("events.out.tfevents.1700000000."));
  writer.scalar("loss_metrics/global_avg_loss", 2.5, 1, 1700000001.5);
  writer.scalar("grad_norm", std::numeric_limits<double>::quiet_NaN(), 1, 1700000001.5);
  writer.scalar("n_tokens_seen", 1e9, 300, 1700000002);
  writer.flush();
  const auto events = read_events(writer.path());
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].tag, "loss_metrics/global_avg_loss");
  EXPECT_EQ(events[0].value, 2.5F);
  EXPECT_EQ(events[0].unix_time, 1700000001.5);
  EXPECT_TRUE(std::isnan(events[1].value));
  EXPECT_EQ(events[2].step, 300);
}

TEST_F(Metrics, TheFirstRecordIsTheOneThatEveryEventFileBeginsWith) {
  EventWriter writer(folder_, 1.0);
  writer.flush();
  const std::string bytes = read_file(writer.path());
  // Length 24 and its masked CRC, wall_time 1.0, file_version; then the CRC of these 24 bytes.
  ASSERT_EQ(bytes.size(), 8U + 4 + 24 + 4);
  EXPECT_EQ(bytes.substr(0, 12), std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12));
  EXPECT_EQ(bytes.substr(12, 24),
            std::string("\x09\0\0\0\0\0\0\xf0\x3f\x1a\x0d", 11) + "brain.Event:2");
}

// tools/read_events.py prints what the `tensorboard` package reads from the file.
TEST_F(Metrics, TheRealTensorBoardReadsThem) {
  EventWriter writer(folder_, 1700000000);
  writer.scalar("loss_metrics/global_avg_loss", 2.5, 1, 1700000001.5);
  writer.scalar("throughput(tps)", 123456, 1, 1700000001.5);
  writer.scalar("loss_metrics/global_avg_loss", 2.25, 10, 1700000009);
  writer.flush();
  const fs::path out = folder_ / "out.txt";
  const std::string command = fmt::format("python3 {}/tools/read_events.py {} > {}",
                                          RHEA_SOURCE_DIR, folder_.string(), out.string());
  const int status = std::system(command.c_str());
  if (WIFEXITED(status) && (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127))
    GTEST_SKIP() << "no `tensorboard` package here: " << read_file(out);
  ASSERT_EQ(status, 0) << command;
  EXPECT_EQ(read_file(out),
            "loss_metrics/global_avg_loss 1 2.5 1700000001.5\n"
            "loss_metrics/global_avg_loss 10 2.25 1700000009.0\n"
            "throughput(tps) 1 123456.0 1700000001.5\n");
}

TEST_F(Metrics, TornAndDamagedEventFiles) {
  std::string good;
  {
    EventWriter writer(folder_, 1.0);
    writer.scalar("a", 1, 1, 1.0);
    writer.scalar("b", 2, 2, 2.0);
    writer.flush();
    good = read_file(writer.path());
  }
  const fs::path path = folder_ / "torn";
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::string bad = good;
    const bool cut = round % 2 == 0;
    if (cut)
      bad.resize(random() % good.size());
    else
      bad[random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
    std::ofstream(path, std::ios::binary) << bad;
    try {
      const auto events = read_events(path);
      // A flipped bit of a length is seen by its own checksum.
      EXPECT_TRUE(cut) << "a flipped bit went unseen";
      EXPECT_LE(events.size(), 2U);
    } catch (const Error& error) {
      EXPECT_FALSE(cut) << error.what();
    }
  }
}

TEST_F(Metrics, FolderNameIsTheTimeAndPerhapsTheRank) {
  ::setenv("TZ", "UTC", 1);
  EXPECT_EQ(tensorboard_folder("out", "tb", 1700000000, std::nullopt), "out/tb/20231114-2213");
  EXPECT_EQ(tensorboard_folder("out", "tb", 1700000000, 3), "out/tb/20231114-2213/rank_3");
}

TEST_F(Metrics, JsonLinesAppendAndCutATornLine) {
  const fs::path path = folder_ / "metrics" / "rank_0.jsonl";
  const std::vector<Metric> metrics = {
      {"loss_metrics/global_avg_loss", 2.5}, {"n_tokens_seen", 16384}, {"mfu(%)", std::nan("")}};
  JsonlWriter(path).write(1, 10.5, metrics);
  std::ofstream(path, std::ios::app) << R"({"step":2,"ti)";
  JsonlWriter(path).write(2, 11, metrics);
  std::istringstream lines(read_file(path));
  std::string line;
  int64_t step = 0;
  while (std::getline(lines, line)) {
    const auto json = parse_json(line);
    EXPECT_EQ(json["step"], ++step);
    EXPECT_EQ(json["loss_metrics/global_avg_loss"], 2.5);
    EXPECT_TRUE(json["n_tokens_seen"].is_number_integer());
    EXPECT_TRUE(json["mfu(%)"].is_null());
  }
  EXPECT_EQ(step, 2);
}

TEST_F(Metrics, AFullDiskIsNamed) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  try {
    JsonlWriter("/dev/full").write(1, 1, {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("/dev/full"));
  }
}

TEST_F(Metrics, TheStatusLineNeverSharesALineWithTheLog) {
  testing::internal::CaptureStdout();
  MetricsConfig config;
  config.enable_jsonl = false;
  StepMetrics metrics({.config = config,
                       .dump_folder = folder_,
                       .progress = true,
                       .machine_bytes = 1,
                       .total_steps = 9});
  metrics.count_step(1);
  metrics.log_step(1, 1, 1, 1, 1, {});
  metrics.show_progress(1);
  log::info("train", "saved");
  metrics.show_progress(2);
  metrics.show_progress(3);
  metrics.log_validation(3, 1, 1, 1);
  log::info("train", "done");
  log::clear_status();
  const std::string said = testing::internal::GetCapturedStdout();
  // What a terminal shows: text after the last erasure of each line.
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    const size_t erased = line.rfind("\033[K");
    const std::string seen = erased == std::string::npos ? line : line.substr(erased + 3);
    EXPECT_TRUE(seen.starts_with("[rhea] ")) << line;
    EXPECT_THAT(seen, testing::Not(testing::HasSubstr(" left")));
  }
  EXPECT_THAT(said, testing::HasSubstr("step 3/9, "));
}

// Keeps what it gets, and fails when it is told to.
struct Kept {
  std::vector<std::pair<int64_t, double>> losses;
  std::vector<int64_t> validations;
  int64_t fails_at = -1;
};

class KeepingSink : public MetricSink {
 public:
  explicit KeepingSink(Kept& kept) : kept_(kept) {}
  void write(const Record& record) override {
    if (record.step == kept_.fails_at) throw Error("the shelf is full");
    if (record.is_validation())
      kept_.validations.push_back(record.step);
    else
      kept_.losses.emplace_back(record.step, record.at("loss_metrics/global_avg_loss"));
  }

 private:
  Kept& kept_;
};

TEST_F(Metrics, ASinkOfAUsersFileGetsStepsAndValidationsWhenItIsNamed) {
  Kept kept;
  sinks().add({"keeping",
               [&kept](const SinkOptions& options) {
                 EXPECT_EQ(options.config.sinks.size(), 1U);
                 return std::make_unique<KeepingSink>(kept);
               }},
              "keep.cpp");
  MetricsConfig config;
  config.enable_jsonl = false;
  testing::internal::CaptureStdout();
  StepMetrics unnamed({.config = config, .dump_folder = folder_, .machine_bytes = 1});
  unnamed.log_step(1, 1, 1, 1, 1, {});
  EXPECT_TRUE(kept.losses.empty());
  config.sinks = {"keeping"};
  StepMetrics metrics({.config = config, .dump_folder = folder_, .machine_bytes = 1});
  metrics.log_step(3, 2.5, 2.5, 1, 1, {});
  metrics.log_validation(3, 2, 1, 1);
  kept.fails_at = 4;
  EXPECT_EQ(support::error_of([&] { metrics.log_step(4, 2, 2, 1, 1, {}); }),
            "metric sink keeping at step 4: the shelf is full");
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              testing::HasSubstr("step:  3  loss:  2.50000"));
  EXPECT_THAT(kept.losses, testing::ElementsAre(std::pair<int64_t, double>(3, 2.5)));
  EXPECT_THAT(kept.validations, testing::ElementsAre(3));
  config.sinks = {"absent"};
  EXPECT_EQ(support::error_of([&] { StepMetrics({.config = config, .dump_folder = folder_}); }),
            "metric sink 'absent' is unknown; known: console, jsonl, tensorboard, keeping");
}

}  // namespace
}  // namespace rhea::metrics
