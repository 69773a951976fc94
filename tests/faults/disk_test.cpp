// A disk that has no room for a checkpoint.
#include <sched.h>
#include <sys/mount.h>

#include "tests/faults/fault_test.h"

namespace rhea {
namespace {

constexpr int kFull = 4;  // exit code

using Disk = FaultTest;

// The write itself fails, in the middle of the file.
TEST_F(Disk, AFailedWriteLeavesTheOlderCheckpoint) {
  ASSERT_EQ(run(words("full", 4)).code, 0);
  const auto before = support::read_step(step_folder("full", 4));
  const auto outcome = run(words("full"), {.max_file_bytes = 500'000});
  EXPECT_EQ(outcome.code, kFull) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr(": cannot write "));
  EXPECT_THAT(outcome.output, HasSubstr("step-6"));
  EXPECT_THAT(outcome.output, HasSubstr("bytes"));
  EXPECT_EQ(latest_step("full"), 4);
  EXPECT_EQ(difference(before, support::read_step(step_folder("full", 4))), "");
  expect_whole("full");
}

TEST_F(Disk, AFailedWriteInTheBackgroundEndsTheRunToo) {
  const Words async = {"--checkpoint.async_mode=async"};
  ASSERT_EQ(run(support::join(words("full", 4), async)).code, 0);
  const auto outcome = run(support::join(words("full"), async), {.max_file_bytes = 500'000});
  EXPECT_EQ(outcome.code, kFull) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr(": cannot write "));
  EXPECT_EQ(latest_step("full"), 4);
  expect_whole("full");
}

TEST_F(Disk, RetryGoesOnAsLongAsAnOlderCheckpointIsThere) {
  ASSERT_EQ(run(words("full", 4)).code, 0);
  const auto outcome = run(support::join(words("full"), {"--checkpoint.on_full_disk=retry"}),
                           {.max_file_bytes = 500'000});
  EXPECT_THAT(outcome.output, HasSubstr("Training goes on"));
  EXPECT_THAT(outcome.output, HasSubstr("step: 12"));
  EXPECT_EQ(outcome.code, kFull) << "the last checkpoint is missing, and nobody tries again";
  EXPECT_EQ(latest_step("full"), 4);
  expect_whole("full");
}

TEST_F(Disk, ALogThatFindsNoSpaceEndsTheRunWithTheSameCode) {
  const Words off = support::join({"train", "--dump_folder=" + (temp_.path() / "logs").string(),
                                   "--debug.no_enable_structured_logging"},
                                  support::with_option(small_, "--training.steps=80"));
  for (const Words& kind :
       {Words{}, Words{"--metrics.no_enable_jsonl", "--metrics.enable_tensorboard"}}) {
    const auto outcome = run(support::join(off, kind), {.max_file_bytes = 16'384});
    EXPECT_EQ(outcome.code, kFull) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr(": cannot write "));
  }
}

// A disk of 4 MiB, in a mount namespace of this process, holds two checkpoints of 1.9 MB.
TEST_F(Disk, FullBeforeTheWriteBegins) {
  const fs::path disk = temp_.path() / "disk";
  fs::create_directories(disk);
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", disk.c_str(), "tmpfs", 0, "size=4m") != 0)
    GTEST_SKIP() << "mounting a small disk needs the rights of root";
  const auto outcome = run(words("disk"));
  EXPECT_EQ(outcome.code, kFull) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("not enough disk space"));
  EXPECT_THAT(outcome.output, HasSubstr("bytes needed"));
  EXPECT_THAT(outcome.output, HasSubstr("keep_latest_k"));
  EXPECT_EQ(latest_step("disk"), 4);
  expect_whole("disk");
  // With one checkpoint less to keep, the run goes on.
  fs::remove_all(step_folder("disk", 2));
  expect_ends_as_undisturbed("disk", 6);
  ::umount2(disk.c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace rhea
