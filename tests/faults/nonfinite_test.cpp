// A loss that explodes stops the run before it can spoil anything.
#include "tests/faults/fault_test.h"

namespace rhea {
namespace {

constexpr int kNonFinite = 3;  // exit code

class NonFinite : public FaultTest {
 protected:
  // 4 good steps, each saved, three kept; from step 5 on a learning rate that explodes.
  void SetUp() override {
    const auto good = run(often("run", 4));
    ASSERT_EQ(good.code, 0) << good.output;
  }
  Words often(const std::string& dump, int steps) const {
    return support::join(support::with_option(words(dump, steps), "--checkpoint.interval=1"),
                         {"--checkpoint.keep_latest_k=3"});
  }
  const Words explosion_ = {"--optimizer.param_groups.0.optimizer_kwargs.lr=1e30"};
};

TEST_F(NonFinite, StopsBeforeTheUpdate) {
  const auto before = support::read_step(step_folder("run", 4));
  const auto outcome = run(support::join(often("run", 12), explosion_));
  EXPECT_EQ(outcome.code, kNonFinite) << outcome.output;
  EXPECT_THAT(outcome.output,
              HasSubstr("Loss or gradient norm is not finite on at least one rank at step 6. "
                        "Stopping training before the optimizer update."));
  // Step 5 was finite; what it left is the newest, and the good ones beside it are untouched.
  EXPECT_THAT(outcome.output,
              HasSubstr("last complete checkpoint: " + step_folder("run", 5).string()));
  EXPECT_EQ(latest_step("run"), 5);
  EXPECT_EQ(difference(before, support::read_step(step_folder("run", 4))), "");
  EXPECT_TRUE(fs::exists(step_folder("run", 3)));
  expect_whole("run");
}

TEST_F(NonFinite, SkipGoesOnWithoutTheUpdate) {
  const auto outcome = run(
      support::join(often("run", 8), support::join(explosion_, {"--training.on_nonfinite=skip"})));
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("at step 6. This update is skipped."));
  EXPECT_THAT(outcome.output, HasSubstr("3 step(s) were skipped without an update"));
  // The update of step 5 is the last one.
  auto last = support::read_step(step_folder("run", 8));
  auto fifth = support::read_step(step_folder("run", 6));
  std::erase_if(last, [](const auto& entry) { return entry.first.starts_with("state."); });
  std::erase_if(fifth, [](const auto& entry) { return entry.first.starts_with("state."); });
  EXPECT_EQ(difference(fifth, last), "");
}

}  // namespace
}  // namespace rhea
