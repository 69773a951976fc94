// Policy: resume, purge, last saves, damage, kills, full disks.
#include "rhea/components/checkpoint/checkpointer.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <fstream>
#include <limits>
#include <random>
#include <thread>

#include "rhea/components/checkpoint/step_folder.h"
#include "rhea/components/checkpoint/test_run.h"
#include "rhea/components/safetensors/reader.h"

namespace rhea::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class CheckpointerTest : public TestFolder {
 protected:
  CheckpointerTest() {
    config_.enable = true;
    config_.interval = 1;
    config_.keep_latest_k = 0;
  }
  Checkpointer make() { return Checkpointer(config_, {folder_, folder_ / "assets"}); }
  fs::path step(int64_t n) const { return folder_ / "checkpoint" / fmt::format("step-{}", n); }
  // A run that saved the steps given.
  void save_steps(const std::vector<int64_t>& steps, SaveReason reason = SaveReason::interval) {
    Checkpointer checkpointer = make();
    TinyRun run;
    for (const int64_t n : steps) {
      run.set(n);
      checkpointer.save(n, run.tensors(), run.state(), reason);
    }
    checkpointer.wait();
  }
  std::vector<std::string> names(const fs::path& folder) const {
    std::vector<std::string> found;
    for (const auto& item : fs::directory_iterator(folder))
      found.push_back(item.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }
  CheckpointConfig config_;
};

TEST_F(CheckpointerTest, DisabledDoesNothing) {
  config_.enable = false;
  Checkpointer checkpointer = make();
  TinyRun run;
  EXPECT_FALSE(checkpointer.due(1, SaveReason::last));
  EXPECT_FALSE(checkpointer.save(1, run.tensors(), {}, SaveReason::last));
  EXPECT_EQ(checkpointer.load(run.tensors()).source, Loaded::Source::fresh);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(CheckpointerTest, ResumeGivesBackTensorsStepAndState) {
  save_steps({1, 2});
  TinyRun run;
  const Loaded loaded = make().load(run.tensors());
  EXPECT_EQ(loaded.source, Loaded::Source::resumed);
  EXPECT_EQ(loaded.step, 2);
  EXPECT_EQ(loaded.path, step(2));
  EXPECT_TRUE(run.holds(2));
  EXPECT_EQ(loaded.state.at("train_state"), R"({"step":2,"ntokens_seen":200})");
  EXPECT_THAT(names(step(2)), ElementsAre("manifest.json", "rank-00000.safetensors"));
  const safetensors::File file(step(2) / "rank-00000.safetensors");
  EXPECT_THAT(safetensors::read_vector<float>(file.at("layers.0.bias")), ElementsAre(2, 2, 2));
}

TEST_F(CheckpointerTest, DueFollowsIntervalFirstStepAndReason) {
  config_.interval = 5;
  const auto due = [&](int64_t n, SaveReason reason) { return make().due(n, reason); };
  EXPECT_FALSE(due(1, SaveReason::interval));
  EXPECT_TRUE(due(10, SaveReason::interval));
  EXPECT_TRUE(due(3, SaveReason::signal));
  EXPECT_TRUE(due(3, SaveReason::data_end));
  EXPECT_TRUE(due(3, SaveReason::last));
  config_.enable_first_step_checkpoint = true;
  config_.save_on_signal = false;
  EXPECT_TRUE(due(1, SaveReason::interval));
  EXPECT_FALSE(due(3, SaveReason::signal));
  config_.load_only = true;
  EXPECT_FALSE(due(10, SaveReason::last));
}

// Saves steps as fast as it can until it is killed; the state is checked against the step each time
// it starts.
[[noreturn]] void save_until_killed(const std::function<Checkpointer()>& make, int ready) {
  try {
    TinyRun run;
    std::vector<float> bulk(20'000, 0);
    auto tensors = run.tensors();
    tensors.push_back({"bulk", DType::f32, {20'000}, bulk.data()});
    Checkpointer checkpointer = make();
    const Loaded loaded = checkpointer.load(tensors);
    run.step = loaded.step;
    if (!run.holds(static_cast<float>(loaded.step)) ||
        bulk[19'999] != static_cast<float>(loaded.step))
      ::_exit(3);
    if (loaded.step > 0 &&
        loaded.state.at("lr_scheduler") != fmt::format(R"({{"step":{}}})", loaded.step))
      ::_exit(4);
    while (true) {
      run.advance();
      bulk.assign(bulk.size(), static_cast<float>(run.step));
      checkpointer.save(run.step, tensors, run.state(), SaveReason::interval);
      // With async saves the second one has waited for the first.
      if (run.step < loaded.step + 2) continue;
      [[maybe_unused]] const auto ignored = ::write(ready, "x", 1);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    ::_exit(5);
  }
}

void kill_and_restart(const std::function<Checkpointer()>& make, const fs::path& folder) {
  std::mt19937 random(11);
  int64_t last = 0;
  for (int round = 0; round < 20; ++round) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    if (child == 0) save_until_killed(make, pipe[1]);
    ::close(pipe[1]);
    char byte;
    ASSERT_EQ(::read(pipe[0], &byte, 1), 1) << "the child ended before its first save";
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ::close(pipe[0]);
    ASSERT_TRUE(WIFSIGNALED(status)) << "exit code " << WEXITSTATUS(status);

    TinyRun run;
    std::vector<float> bulk(20'000, 0);
    auto tensors = run.tensors();
    tensors.push_back({"bulk", DType::f32, {20'000}, bulk.data()});
    const Loaded loaded = make().load(tensors);
    ASSERT_EQ(loaded.source, Loaded::Source::resumed);
    EXPECT_TRUE(run.holds(static_cast<float>(loaded.step)));
    EXPECT_EQ(loaded.state.at("train_state"),
              fmt::format(R"({{"step":{},"ntokens_seen":{}}})", loaded.step, loaded.step * 100));
    EXPECT_GE(loaded.step, last) << "a complete checkpoint was lost";
    last = loaded.step;
    for (const auto& item : fs::directory_iterator(folder))
      EXPECT_EQ(item.path().string().find(".tmp-"), std::string::npos) << item.path();
  }
  EXPECT_GE(last, 20);
}

TEST_F(CheckpointerTest, K1KilledAtAnyMomentTheNextStartLoadsAWholeOne) {
  config_.keep_latest_k = 3;
  kill_and_restart([&] { return make(); }, folder_ / "checkpoint");
}

TEST_F(CheckpointerTest, K2AsyncAndPurgeNeverLeaveFewerThanOne) {
  config_.keep_latest_k = 2;
  config_.async_mode = "async";
  kill_and_restart([&] { return make(); }, folder_ / "checkpoint");
}

TEST_F(CheckpointerTest, K3K4AsyncWritesTheSnapshotAndLoadWaitsForIt) {
  config_.async_mode = "Async_With_Pinned_Mem";
  Checkpointer checkpointer = make();
  TinyRun run;
  run.set(7);
  checkpointer.save(7, run.tensors(), run.state(), SaveReason::interval);
  run.set(99);
  const Loaded loaded = checkpointer.load(run.tensors());
  EXPECT_EQ(loaded.step, 7);
  EXPECT_TRUE(run.holds(7));
}

TEST_F(CheckpointerTest, K5PurgeTouchesOnlyItsOwn) {
  save_steps({50, 200});
  fs::create_directories(folder_ / "checkpoint" / "step-10-bak");
  fs::create_directories(folder_ / "checkpoint" / "notes");
  fs::create_directories(folder_ / "checkpoint" / "step-11");  // never completed
  fs::create_directories(folder_ / "elsewhere");
  fs::create_directory_symlink(folder_ / "elsewhere", step(12));
  config_.keep_latest_k = 2;
  save_steps({300});
  EXPECT_THAT(names(folder_ / "checkpoint"),
              ElementsAre("notes", "step-10-bak", "step-11", "step-12", "step-200", "step-300"));
}

TEST_F(CheckpointerTest, PurgeKeepsTheStepJustWrittenEvenBelowOlderOnes) {
  save_steps({90, 100});
  config_.keep_latest_k = 2;
  save_steps({30});
  EXPECT_THAT(names(folder_ / "checkpoint"), ElementsAre("step-100", "step-30"));
}

TEST_F(CheckpointerTest, K6AFolderThatIsNotThereYet) {
  config_.keep_latest_k = 2;
  config_.folder = "a/b/c";
  EXPECT_EQ(make().latest(), std::nullopt);
  save_steps({1});
  EXPECT_EQ(make().latest(), folder_ / "a/b/c/step-1");
}

TEST_F(CheckpointerTest, K7EmptyFolderInitialLoadAndLoadStep) {
  save_steps({5});
  const fs::path initial = folder_ / "elsewhere";
  fs::rename(step(5), initial);
  config_.initial_load_path = initial.string();
  TinyRun run;
  Loaded loaded = make().load(run.tensors());
  EXPECT_EQ(loaded.source, Loaded::Source::initial);
  EXPECT_EQ(loaded.step, 0);
  EXPECT_THAT(loaded.state, testing::IsEmpty());
  EXPECT_THAT(run.weight, testing::Each(5)) << "weights are taken";
  EXPECT_THAT(run.weight_m, testing::Each(0)) << "optimizer state is not";
  config_.initial_load_model_only = false;
  loaded = make().load(run.tensors());
  EXPECT_EQ(loaded.step, 5);
  EXPECT_TRUE(run.holds(5));

  config_.load_step = 7;
  EXPECT_THAT(error_of([&] { make().load(run.tensors()); }),
              AllOf(HasSubstr("load_step 7"), HasSubstr("none")));
  config_.load_step = -1;
  save_steps({1});
  testing::internal::CaptureStdout();
  loaded = make().load(run.tensors());
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("initial_load_path is ignored"),
                    HasSubstr("Loading the checkpoint from " + step(1).string() + ".")));
  EXPECT_EQ(loaded.step, 1);
  config_.load_step = 7;
  EXPECT_THAT(
      error_of([&] { make().load(run.tensors()); }),
      AllOf(HasSubstr("load_step 7"), HasSubstr("steps present: 1"), HasSubstr(folder_.string())));
}

TEST_F(CheckpointerTest, ExcludedPartsStayFresh) {
  save_steps({4});
  config_.exclude_from_loading = {"optimizer", "lr_scheduler", "train_state"};
  TinyRun run;
  const Loaded loaded = make().load(run.tensors());
  EXPECT_EQ(loaded.step, 0);
  EXPECT_THAT(run.bias, testing::Each(4));
  EXPECT_THAT(run.bias_m, testing::Each(0));
  EXPECT_THAT(loaded.state, ElementsAre(testing::Key("dataloader")));
}

TEST_F(CheckpointerTest, FreshStartSaysSo) {
  TinyRun run;
  testing::internal::CaptureStdout();
  EXPECT_EQ(make().load(run.tensors()).source, Loaded::Source::fresh);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              HasSubstr("No checkpoint was provided, this is a fresh start."));
}

TEST_F(CheckpointerTest, K12K14TheLastSaveIsWeightsInTheExportDtypeBesideAFullOne) {
  config_.export_dtype = "bfloat16";
  testing::internal::CaptureStdout();
  save_steps({10}, SaveReason::last);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("Saving a full checkpoint at last step, step 10."),
                    HasSubstr("Saving a model only checkpoint in bfloat16 at last step, step 10."),
                    HasSubstr("Last step checkpoint completed in "),
                    HasSubstr((folder_ / "checkpoint/export/step-10").string())));
  const safetensors::File file(folder_ / "checkpoint/export/step-10/rank-00000.safetensors");
  ASSERT_EQ(file.tensors().size(), 2U);
  EXPECT_EQ(file.tensors()[0].dtype, safetensors::ElementType::BF16);
  TinyRun run;
  EXPECT_EQ(make().load(run.tensors()).step, 10);
  EXPECT_TRUE(run.holds(10));
}

TEST_F(CheckpointerTest, K14WeightsAloneAreNoResumeSource) {
  config_.keep_last_full = false;
  save_steps({10}, SaveReason::last);
  EXPECT_THAT(names(folder_ / "checkpoint"), ElementsAre("step-10"));
  TinyRun run;
  EXPECT_THAT(error_of([&] { make().load(run.tensors()); }),
              AllOf(HasSubstr("weights only"),
                    HasSubstr("--checkpoint.initial_load_path " + step(10).string())));
  // It serves as the source of another run.
  config_.initial_load_path = step(10).string();
  config_.folder = "second";
  EXPECT_EQ(make().load(run.tensors()).step, 0);
  EXPECT_THAT(run.weight, testing::Each(10));
  config_.initial_load_model_only = false;
  EXPECT_THAT(error_of([&] { make().load(run.tensors()); }), HasSubstr("holds weights only"));
}

TEST_F(CheckpointerTest, K15AHuggingFaceFolderIsNoResumeSource) {
  config_.keep_last_full = false;
  config_.last_save_in_hf = true;
  save_steps({10}, SaveReason::last);
  EXPECT_THAT(names(step(10)), ElementsAre("model.safetensors"));
  TinyRun run;
  testing::internal::CaptureStdout();
  EXPECT_EQ(make().load(run.tensors()).source, Loaded::Source::fresh);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("Skipping"), HasSubstr("--checkpoint.initial_load_in_hf")));
  config_.initial_load_path = step(10).string();
  EXPECT_THAT(error_of([&] { make().load(run.tensors()); }),
              HasSubstr("--checkpoint.initial_load_in_hf"));
  config_.initial_load_in_hf = true;
  EXPECT_EQ(make().load(run.tensors()).source, Loaded::Source::initial);
  EXPECT_THAT(run.weight, testing::Each(10));
  EXPECT_THAT(run.weight_m, testing::Each(0));
}

TEST_F(CheckpointerTest, ASeedIsLoadedAsWeights) {
  TinyRun run;
  run.set(3);
  make().save_seed(run.tensors(), {});
  run.set(0);
  const Loaded loaded = make().load(run.tensors());
  EXPECT_EQ(loaded.step, 0);
  EXPECT_THAT(run.weight, testing::Each(3));
  EXPECT_THAT(run.weight_m, testing::Each(0));
}

TEST_F(CheckpointerTest, ASaveReplacesTheSameStepOfAnEarlierRun) {
  save_steps({1, 2});
  config_.load_step = 1;
  TinyRun run;
  {
    Checkpointer checkpointer = make();
    EXPECT_EQ(checkpointer.load(run.tensors()).step, 1);
    run.set(42);
    checkpointer.save(2, run.tensors(), run.state(), SaveReason::interval);
    run.set(43);
    checkpointer.save(2, run.tensors(), run.state(), SaveReason::signal);  // has just been written
  }
  config_.load_step = -1;
  make().load(run.tensors());
  EXPECT_TRUE(run.holds(42));
  EXPECT_THAT(names(folder_ / "checkpoint"), ElementsAre("step-1", "step-2"));
}

TEST_F(CheckpointerTest, DamagedFilesAreNamedAndTheOneBeforeIsOffered) {
  save_steps({10, 20});
  const fs::path data = step(20) / "rank-00000.safetensors";
  const std::string good = read_file(data);
  const auto damage = [&](const std::string& content, const fs::path& path) {
    std::ofstream(path, std::ios::binary) << content;
    TinyRun run;
    return error_of([&] { make().load(run.tensors()); });
  };
  EXPECT_THAT(damage(good.substr(0, good.size() - 1), data),
              AllOf(HasSubstr(data.string()), HasSubstr("--checkpoint.load_step 10")));
  std::string flipped = good;
  flipped[flipped.size() - 3] ^= 4;
  EXPECT_THAT(damage(flipped, data), AllOf(HasSubstr(data.string()), HasSubstr("layers.0"),
                                           HasSubstr("--checkpoint.load_step 10")));
  fs::remove(data);
  TinyRun run;
  EXPECT_THAT(error_of([&] { make().load(run.tensors()); }),
              AllOf(HasSubstr("is missing"), HasSubstr("--checkpoint.load_step 10")));
  EXPECT_EQ(damage(good, data), "no error");
  const fs::path manifest = step(20) / "manifest.json";
  std::string text = read_file(manifest);
  text[text.size() / 2] ^= 1;
  EXPECT_THAT(damage(text, manifest),
              AllOf(HasSubstr(manifest.string()), HasSubstr("--checkpoint.load_step 10")));
  config_.load_step = 20;
  EXPECT_THAT(error_of([&] { make().load(run.tensors()); }),
              HasSubstr("--checkpoint.load_step 10"));
  config_.load_step = 10;
  EXPECT_EQ(make().load(run.tensors()).step, 10);
  // The run passes the damaged step and replaces it.
  config_.load_step = -1;
  save_steps({20});
  EXPECT_EQ(make().load(run.tensors()).step, 20);
}

TEST_F(CheckpointerTest, LoadingIsStrict) {
  save_steps({1});
  TinyRun run;
  std::vector<float> more(4);
  auto tensors = run.tensors();
  tensors[1].shape = {4};
  tensors[1].data = more.data();
  tensors[0].name = "layers.0.kernel";
  EXPECT_THAT(error_of([&] { make().load(tensors); }),
              AllOf(HasSubstr("missing"), HasSubstr("layers.0.kernel"), HasSubstr("unexpected"),
                    HasSubstr("layers.0.weight"),
                    HasSubstr("layers.0.bias: f32 [3] in the checkpoint, f32 [4] in the model")));
  tensors = run.tensors();
  std::vector<int64_t> integers(3);
  tensors[1] = {"layers.0.bias", DType::i64, {3}, integers.data()};
  EXPECT_THAT(error_of([&] { make().load(tensors); }), HasSubstr("i64 [3] in the model"));
  std::vector<bf16> rounded(3);
  tensors[1] = {"layers.0.bias", DType::bf16, {3}, rounded.data()};
  EXPECT_EQ(make().load(tensors).step, 1);
  EXPECT_EQ(static_cast<float>(rounded[2]), 1);
}

TEST_F(CheckpointerTest, AFolderBelongsToOneRun) {
  TinyRun run;
  {
    Checkpointer first = make();
    EXPECT_THAT([&] { make(); }, testing::ThrowsMessage<Error>(
                                     AllOf(HasSubstr((folder_ / "checkpoint").string()),
                                           HasSubstr("another run"), HasSubstr("--dump_folder"))));
    config_.load_only = true;
    make().load(run.tensors());  // who only reads may
    config_.load_only = false;
    run.set(1);
    first.save(1, run.tensors(), run.state(), SaveReason::interval);
  }
  EXPECT_EQ(make().load(run.tensors()).step, 1);
}

// At the start, not at the first save.
TEST_F(CheckpointerTest, AFolderThatCannotBeUsedIsRefused) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "checkpoint") << "a file";
  EXPECT_THAT([&] { make(); },
              testing::ThrowsMessage<Error>(AllOf(HasSubstr((folder_ / "checkpoint").string()),
                                                  HasSubstr("cannot be saved"),
                                                  HasSubstr("--checkpoint.folder"))));
  config_.folder = "/proc/checkpoint";
  EXPECT_THAT([&] { make(); }, testing::ThrowsMessage<Error>(HasSubstr("/proc/checkpoint")));
}

TEST_F(CheckpointerTest, NonFiniteWeightsAreNeverWritten) {
  save_steps({1});
  for (const std::string mode : {"disabled", "async"}) {
    config_.async_mode = mode;
    Checkpointer checkpointer = make();
    TinyRun run;
    run.set(2);
    run.weight_m[4] = std::numeric_limits<float>::quiet_NaN();
    ExitCode code = ExitCode::ok;
    try {
      checkpointer.save(2, run.tensors(), run.state(), SaveReason::interval);
      checkpointer.wait();
    } catch (const ExitError& error) {
      code = error.code();
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr("element 4"), HasSubstr("layers.0.weight.exp_avg")));
    }
    EXPECT_EQ(code, ExitCode::non_finite);
    EXPECT_THAT(names(folder_ / "checkpoint"), ElementsAre("step-1"));
  }
}

// Runs `f` while files may not grow past 4 KiB, as on a disk that fills up during the save.
void with_small_files(const std::function<void()>& f) {
  struct rlimit old {};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = old;
  small.rlim_cur = 4096;
  ::setrlimit(RLIMIT_FSIZE, &small);
  f();
  ::setrlimit(RLIMIT_FSIZE, &old);
  ::signal(SIGXFSZ, handler);
}

TEST_F(CheckpointerTest, AFullDiskLeavesTheOlderCheckpointAndNothingTorn) {
  std::vector<float> bulk(5000, 1);
  const std::vector<NamedTensor> tensors = {{"bulk", DType::f32, {5000}, bulk.data()}};
  {
    Checkpointer checkpointer = make();
    checkpointer.save(1, tensors, {}, SaveReason::interval);
  }
  const auto fail = [&](const std::string& mode, const std::string& on_full_disk) {
    config_.async_mode = mode;
    config_.on_full_disk = on_full_disk;
    std::string message = "no error";
    with_small_files([&] {
      Checkpointer checkpointer = make();
      try {
        checkpointer.save(2, tensors, {}, SaveReason::interval);
        checkpointer.wait();
      } catch (const ExitError& error) {
        message = error.code() == ExitCode::out_of_memory ? error.what() : "another code";
      }
    });
    EXPECT_THAT(names(folder_ / "checkpoint"), ElementsAre("step-1"));
    return message;
  };
  for (const std::string mode : {"disabled", "async"}) {
    EXPECT_THAT(fail(mode, "stop"), AllOf(HasSubstr("rank-00000.safetensors"), HasSubstr("needs")));
    testing::internal::CaptureStdout();
    EXPECT_EQ(fail(mode, "retry"), "no error");
    EXPECT_THAT(testing::internal::GetCapturedStdout(),
                AllOf(HasSubstr("Training goes on"), HasSubstr(step(1).string())));
  }
  fs::remove_all(step(1));
  config_.async_mode = "disabled";
  std::string message;
  with_small_files(
      [&] { message = error_of([&] { make().save(2, tensors, {}, SaveReason::interval); }); });
  EXPECT_THAT(message, HasSubstr("cannot write"))
      << "without an older checkpoint there is nothing to go on with";
}

TEST_F(CheckpointerTest, SpaceIsCheckedBeforeWriting) {
  save_steps({1});
  // Larger than any disk; the data is never touched.
  const std::vector<NamedTensor> tensors = {{"huge", DType::f32, {int64_t{1} << 55}, nullptr}};
  EXPECT_THAT(error_of([&] { make().save(2, tensors, {}, SaveReason::interval); }),
              AllOf(HasSubstr("not enough disk space"), HasSubstr("bytes needed"),
                    HasSubstr("free"), HasSubstr((folder_ / "checkpoint").string())));
  EXPECT_THAT(names(folder_ / "checkpoint"), ElementsAre("step-1"));
}

TEST_F(CheckpointerTest, TemporariesOfDeadRunsAreRemovedThoseOfLivingOnesAreNot) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const fs::path own = folder_ / "checkpoint";
  const fs::path living = own / fmt::format("step-5.tmp-{}-{}", host.data(), ::getppid());
  for (const fs::path& path : {own / "step-5.tmp-elsewhere-17",
                               own / fmt::format("step-6.tmp-old-{}-{}", host.data(), ::getpid()),
                               living, own / "mine.tmp-a-1"})
    fs::create_directories(path / "inside");
  make();
  EXPECT_THAT(names(own), ElementsAre("mine.tmp-a-1", living.filename().string()));
}

}  // namespace
}  // namespace rhea::checkpoint
