// Conversions and token files that are killed, that find no space, or that meet each other.
#include <sched.h>
#include <sys/mount.h>

#include <chrono>
#include <random>
#include <thread>

#include "rhea/base/output_folder.h"
#include "rhea/components/safetensors/reader.h"
#include "tests/faults/fault_test.h"

namespace rhea {
namespace {

const fs::path kTestData = fs::path(RHEA_SOURCE_DIR) / "tests/data";
const fs::path kModel = kTestData / "golden/models/llama3_rope_tied";
const fs::path kTokenizer = fs::path(RHEA_SOURCE_DIR) / "tests/assets/tokenizer";

class Files : public FaultTest {
 protected:
  void SetUp() override { fs::create_directories(place()); }
  fs::path place() const { return temp_.path() / "place"; }
  fs::path out() const { return place() / "out"; }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& item : fs::directory_iterator(place()))
      found.push_back(item.path().filename().string());
    return found;
  }
  // Every command that writes a folder, with `out()` as its result.
  std::vector<Words> commands() const {
    return {
        {"convert", "--from", kModel.string(), "--to", out().string()},
        {"convert", "--from", kModel.string(), "--to", out().string(), "--max_shard_size", "20KB"},
        {"convert", "--from", (kTestData / "gguf/llama.gguf").string(), "--to", out().string(),
         "--format", "native"},
        {"tokenizer", "shard", "--tokenizer", kTokenizer.string(), "--dataset", "text",
         "--dataset_path", fs::path(RHEA_SOURCE_DIR) / "README.md", "--seq_len", "64",
         "--rows_per_file", "16", "--output", out().string()}};
  }
  // A whole result, whichever command wrote it.
  void expect_whole() {
    bool any = false;
    for (const auto& item : fs::directory_iterator(out())) {
      EXPECT_THAT(item.path().filename().string(), Not(HasSubstr(".tmp")));
      if (item.path().extension() != ".safetensors") continue;
      any = true;
      EXPECT_NO_THROW(safetensors::File{item.path()}) << item.path();
    }
    EXPECT_TRUE(any);
    if (!fs::exists(out() / "config.json") && !fs::exists(out() / "manifest.json")) return;
    const Outcome inspected = run({"inspect", out().string()});
    EXPECT_EQ(inspected.code, 0) << inspected.output;
  }
};

TEST_F(Files, KilledAtRandomMomentsTheNextTrySucceedsAndCleansUp) {
  std::mt19937 random(5);
  for (const Words& command : commands()) {
    std::uniform_int_distribution<int> microseconds(0, 40'000);
    for (int kill = 0; kill < 12; ++kill) {
      Process process(command, log());
      std::this_thread::sleep_for(std::chrono::microseconds(microseconds(random)));
      process.signal(SIGKILL);
      process.wait();
      if (!fs::exists(out())) continue;
      expect_whole();
      fs::remove_all(out());
    }
    const Outcome last = run(command);
    EXPECT_EQ(last.code, 0) << last.output;
    expect_whole();
    EXPECT_EQ(names(), std::vector<std::string>{"out"});
    fs::remove_all(out());
  }
}

TEST_F(Files, AFailedWriteLeavesNothing) {
  for (const Words& command : commands()) {
    const Outcome outcome = run(command, {.max_file_bytes = 8'000});
    EXPECT_EQ(outcome.code, 4) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("rhea: error: cannot write "));
    EXPECT_TRUE(names().empty()) << names().front();
  }
}

TEST_F(Files, ADiskThatIsTooSmallIsNamedBeforeAnythingIsWritten) {
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", place().c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "mounting a small disk needs the rights of root";
  for (const Words& command : commands()) {
    if (command.front() != "convert") continue;  // the size of token files is not known before
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 4) << outcome.output;
    EXPECT_THAT(outcome.output,
                AllOf(HasSubstr("not enough disk space for " + place().string()),
                      HasSubstr("bytes needed"), HasSubstr("free"),
                      HasSubstr("name a folder on another disk"), Not(HasSubstr("keep_latest_k"))));
    EXPECT_TRUE(names().empty());
  }
  ::umount2(place().c_str(), MNT_DETACH);
}

TEST_F(Files, OfSeveralAtOnceOneWritesTheFolder) {
  for (const Words& command : commands()) {
    std::vector<std::unique_ptr<Process>> all;
    for (int i = 0; i < 4; ++i) all.push_back(std::make_unique<Process>(command, log()));
    int num_good = 0;
    for (const auto& one : all) {
      const int code = one->wait();
      num_good += code == 0;
      if (code == 0) continue;
      EXPECT_EQ(code, 2) << one->output();
      EXPECT_THAT(one->output(), AnyOf(HasSubstr("is there already"), HasSubstr("at this moment")));
    }
    // Two that see each other at the start may both step back.
    EXPECT_LE(num_good, 1);
    if (num_good == 1) expect_whole();
    EXPECT_LE(names().size(), 1U);
    fs::remove_all(out());
  }
}

}  // namespace
}  // namespace rhea
