// Runs that cannot fit: told before anything is allocated, not killed by the system later.
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

}  // namespace
}  // namespace rhea
