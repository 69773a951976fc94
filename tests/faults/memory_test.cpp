// Runs that cannot fit: told before anything is allocated, not killed by the system later.
#include "rhea/base/mapped_file.h"
#include "tests/faults/fault_test.h"

namespace rhea {
namespace {

class Memory : public FaultTest {
 protected:
  void expect_refused(const Words& all, const std::string& advice) {
    const Outcome outcome = run(all);
    EXPECT_EQ(outcome.code, 4) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("out of memory: the run needs"));
    EXPECT_THAT(outcome.output, HasSubstr(advice));
    EXPECT_THAT(outcome.output, Not(HasSubstr("Planned peak memory")));
  }
};

TEST_F(Memory, ActivationsThatDoNotFit) {
  expect_refused(support::with_option(words("big"), "--training.local_batch_size=20000000"),
                 "--activation_checkpoint.mode full");
}

TEST_F(Memory, BatchesOfAStepThatDoNotFit) {
  expect_refused(support::join(words("big"), {"--training.global_batch_size=10000000000"}),
                 "a smaller --training.global_batch_size");
}

// The limit of the shell is seen before anything is allocated, too.
TEST_F(Memory, LimitsOfTheShellCount) {
  support::Process process(support::with_option(words("big"), "--training.local_batch_size=2000"),
                           temp_.path() / "limited.log",
                           {.max_address_bytes = uint64_t{400} << 20});
  EXPECT_EQ(process.wait(), 4) << process.output();
  EXPECT_THAT(process.output(), HasSubstr("out of memory: the run needs"));
  EXPECT_THAT(process.output(), HasSubstr("ulimit -v: 0.39 GiB"));
}

TEST_F(Memory, TheSnapshotOfARunThatDoesNotFitNamesItsBuffers) {
  const Words all =
      support::join(support::with_option(words("big"), "--training.local_batch_size=20000000"),
                    {"--profiler.enable_memory_snapshot"});
  expect_refused(all, "--activation_checkpoint.mode full");
  const fs::path file =
      temp_.path() / "big/profiling/memory_snapshot/step_000000000000_exit" / "000000_step_0.json";
  ASSERT_TRUE(fs::exists(file));
  const std::string text = read_file(file);
  EXPECT_THAT(text, HasSubstr("\"fqn\": \"layers.1.attention"));
  EXPECT_THAT(text, HasSubstr("\"name\": \"exp_avg."));
}

}  // namespace
}  // namespace rhea
