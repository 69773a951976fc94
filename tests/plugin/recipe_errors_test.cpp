// What a user reads who mistypes a recipe: the compiler's message, in the first lines, about the
// user's line.
#include "tests/plugin/plugin_test.h"

namespace rhea {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class RecipeErrors : public PluginTest {
 protected:
  // The first lines of the compiler for a recipe with `line` in line 4.
  std::string messages(const std::string& line) const {
    write("wrong.cpp",
          "#include \"rhea/plugin/plugin.h\"\nrhea::TrainerConfig run() {\n  rhea::TrainerConfig "
          "c;\n  " +
              line + "\n  return c;\n}\nRHEA_CONFIG(run)\n");
    const Ended ended = load("wrong.cpp");
    EXPECT_EQ(ended.code, 2);
    EXPECT_THAT(ended.output, HasSubstr("correct the file and start again"));
    // Short enough to be read: no template of Rhea's explains itself at length.
    EXPECT_LT(count(ended.output, "\n"), 20) << ended.output;
    return ended.output;
  }
};

TEST_F(RecipeErrors, AWrongFieldNameNamesTheField) {
  EXPECT_THAT(messages("c.training.stepz = 5;"),
              AllOf(HasSubstr("wrong.cpp:4:14: error: "), HasSubstr("stepz"),
                    HasSubstr("TrainingConfig"), HasSubstr("steps")));
  EXPECT_THAT(messages("c.checkpoint->intervall = 5;"),
              AllOf(HasSubstr("wrong.cpp:4:17: error: "), HasSubstr("intervall"),
                    HasSubstr("CheckpointConfig"), HasSubstr("interval")));
}

// A section that something is built from is a slot, whose fields stand behind an arrow.
TEST_F(RecipeErrors, ADotBeforeAFieldOfASlotNamesTheSlot) {
  EXPECT_THAT(messages("c.checkpoint.enable = true;"),
              AllOf(HasSubstr("wrong.cpp:4:16: error: "), HasSubstr("enable"),
                    HasSubstr("Slot<rhea::CheckpointConfig>")));
}

TEST_F(RecipeErrors, AWrongTypeNamesBothTypes) {
  EXPECT_THAT(messages("c.training.steps = \"ten\";"),
              AllOf(HasSubstr("wrong.cpp:4:"), HasSubstr("error: "), HasSubstr("const char"),
                    HasSubstr("int64_t")));
  EXPECT_THAT(messages("c.model_spec = \"4B\";"),
              AllOf(HasSubstr("wrong.cpp:4:"), HasSubstr("ModelSpec")));
}

TEST_F(RecipeErrors, AFunctionOfAnotherTypeIsNoRun) {
  write("wrong.cpp",
        "#include \"rhea/plugin/plugin.h\"\nint run() { return 1; }\nRHEA_CONFIG(run)\n");
  EXPECT_THAT(load("wrong.cpp").output,
              AllOf(HasSubstr("wrong.cpp:3:"),
                    HasSubstr("RHEA_CONFIG(run): the function must return rhea::TrainerConfig")));
}

}  // namespace
}  // namespace rhea
