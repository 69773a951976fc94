// `rhea check` as a user runs it: on files outside the tree, compiled by the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process.h"
#include "tests/support/temp_folder.h"

namespace rhea {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Outcome {
  int code = 0;
  std::string text;
};

class CheckRun : public testing::Test {
 protected:
  Outcome check(const std::string& file) {
    support::Process process(
        {"check", "--module", "qwen3", "--config", "qwen3_debugmodel", "--training.seq_len", "64",
         "--training.local_batch_size", "2", "--override.imports",
         std::string(RHEA_SOURCE_DIR) + "/tests/check/" + file},
        folder_.path() / "log", {.working_folder = folder_.path()});
    const int code = process.wait(300);
    return {code, process.output()};
  }
  support::TempFolder folder_;
};

TEST_F(CheckRun, AKernelAnOpAndAnOverrideOfOneFilePass) {
  const auto [code, text] = check("my_kernels.cpp");
  EXPECT_EQ(code, 0) << text;
  EXPECT_THAT(text,
              AllOf(HasSubstr("op my_gated of "), HasSubstr("override my_feed_forward: "),
                    HasSubstr("kernels for rope in the run's graphs: my_rope of "),
                    HasSubstr("not a bit may differ"), HasSubstr("refuses: computes in f32 only"),
                    HasSubstr("all within their tolerances")));
}

TEST_F(CheckRun, ARightForwardWithAWrongBackwardEndsWithCode1) {
  const auto [code, text] = check("wrong_backward.cpp");
  EXPECT_EQ(code, 1) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("GradientEqualsDifferences: sample f32: gradient of operand 0"),
                          HasSubstr("override wrong_feed_forward"), HasSubstr("FAILED")));
}

TEST_F(CheckRun, NothingFromOutsideIsAnError) {
  support::Process process({"check", "--module", "qwen3", "--config", "qwen3_debugmodel"},
                           folder_.path() / "log", {.working_folder = folder_.path()});
  EXPECT_EQ(process.wait(60), 2);
  EXPECT_THAT(process.output(), HasSubstr("nothing to check"));
}

}  // namespace
}  // namespace rhea
