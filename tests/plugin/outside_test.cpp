// Mistakes in ops, kernels and modules from outside, and what is said of them before anything is
// allocated.
#include "tests/plugin/plugin_test.h"

namespace rhea {
namespace {

using testing::HasSubstr;

struct Mistake {
  const char* name;  // RHEA_CASE of broken.cpp
  std::vector<std::string> said;
};

// Where the row, the module and what they throw are named.
constexpr const char* kRow = "my_twice(f32[32,256])";
constexpr const char* kScope = "in layers.0.feed_forward";
constexpr const char* kLast = "in layers.7.feed_forward";  // where autodiff begins
constexpr const char* kThrown = "threw something that is no std::exception";
constexpr const char* kKernel = "kernel 'my_kernel' of my_twice(f32[32,256] -> f32[32,256])";

const Mistake kMistakes[] = {
    {"infer gives nothing", {kRow, "infer gives no types", kScope, "broken.cpp:"}},
    {"infer gives a negative dim", {kRow, "f32[-1,4]", "cannot be negative", kScope}},
    {"infer gives too much", {kRow, "more bytes than can be counted", kScope}},
    {"infer gives a scalar",
     {"dim -1 of f32[], the result of my_twice, is asked for; it has 0 dims", kScope,
      "broken.cpp:"}},
    {"infer throws 7", {kRow, kThrown, kScope, "broken.cpp:"}},
    {"infer throws out_of_range", {kRow, "no such dim", kScope}},
    {"decompose gives nothing", {kRow, "decompose: gives 0 values, infer says 1", kScope}},
    {"decompose gives two", {kRow, "decompose: gives 2 values, infer says 1"}},
    {"decompose gives f64", {kRow, "gives f64[32,256] as result 0, infer says f32[32,256]"}},
    {"decompose gives an empty value", {kRow, "gives an empty value as result 0"}},
    {"decompose gives a foreign value", {kRow, "gives a value of another graph as result 0"}},
    {"decompose throws 7", {kRow, kThrown, kScope, "thrown at ", "broken.cpp:"}},
    {"vjp gives nothing", {kRow, "vjp: gives 0 cotangents for 1 operands", kLast}},
    {"vjp gives another shape",
     {kRow, "vjp: gives f32[256,32] as the cotangent of operand 0, which is f32[32,256]", kLast}},
    {"vjp gives f64", {kRow, "vjp: gives f64[32,256] as the cotangent of operand 0", kLast}},
    {"vjp gives a foreign value", {kRow, "vjp: gives a value of another graph", kLast}},
    {"vjp uses an empty value", {kRow, "vjp: add: operand 1 is an empty value", kLast}},
    {"vjp throws 7", {kRow, "vjp: ", kThrown, kLast}},
    {"module uses a foreign value", {"add: operand 1 is a value of another graph", kScope}},
    {"module gives a foreign value", {"Override 'doubled' changes what", "(f32[4,4])"}},
    {"module uses an empty value", {"add: operand 1 is an empty value"}},
    {"plan without run", {kKernel, "plans no run", kScope}},
    {"plan of no items", {kKernel, "plans no items"}},
    {"plan of -3 items", {kKernel, "plans -3 items in phase 0"}},
    {"plan of too many items", {kKernel, "plans 4611686018427387904 items in phase 1"}},
    {"plan of negative scratch", {kKernel, "plans -64 bytes of scratch"}},
    {"plan of too much workspace", {kKernel, "bytes of workspace, expected 0 to 2^40"}},
    {"plan in place of nothing", {kKernel, "result 0 in the place of operand 3"}},
    {"plan throws 7", {kKernel, kThrown, "broken.cpp:"}},
    {"accepts throws 7", {kKernel, "accepts", kThrown, "broken.cpp:"}},
    {"accepts exits", {"broken.cpp:", "exit() was called before the command was done"}},
    {"items throws 7", {kKernel, kThrown, "broken.cpp:"}},
    {"items gives 0", {kKernel, "plans no items"}},
    {"rows without run", {"my_twice: rows gives the roles 'r->r' without run"}},
    {"kernel of the row without run", {"a static initialiser threw: ", "'my_kernel' lacks run"}},
    {"kernel of the row without name", {"broken.cpp: a kernel of op 'my_twice' has no name"}},
    {"kernel without run", {"RHEA_PLUGIN threw: kernel 'my_kernel' lacks run"}},
    {"kernel without plan", {"kernel 'my_kernel' of op 'rope' lacks plan"}},
    {"kernel without name", {"a kernel of op 'rope' has no name"}},
    {"override throws 7", {"Override 'doubled' of ", "layers.0.feed_forward", kThrown}},
    {"loss throws 7", {"loss mine: threw something that is no std::exception"}},
    {"loss gives nothing", {"loss mine traced nothing, expected an f32 scalar"}},
    {"loss gives a foreign value", {"loss mine traced a value of another graph"}},
    {"optimizer throws 7", {"optimizer mine: update of ", kThrown, "thrown at ", "broken.cpp:"}},
    {"optimizer gives nothing", {"optimizer mine gives 0 values for "}},
    {"optimizer gives an empty value", {"optimizer mine gives nothing as value 0 of "}},
    {"plugin throws 7", {"broken.cpp:", "RHEA_PLUGIN threw: something that is no std::exception"}},
    {"plugin exits", {"broken.cpp:", "exit() was called"}},
    {"config throws 7", {"broken.cpp:", "broken() threw: something that is no std::exception"}},
    {"config exits", {"broken.cpp:", "exit() was called"}},
    {"static throws 7", {"a static initialiser threw: something that is no std::exception"}},
    {"static exits", {"exit() was called"}},
};

class Outside : public PluginTest {
 protected:
  void SetUp() override {
    std::filesystem::copy(RHEA_SOURCE_DIR "/tests/plugin/broken.cpp", folder());
  }
  Ended plan(const std::string& mistake) const {
    return rhea({"plan", "--module", "broken", "--config", "broken"}, {{"RHEA_CASE", mistake}});
  }
};

TEST_F(Outside, EveryMistakeIsAnErrorThatNamesWhereItIs) {
  const Ended right = plan("none");
  EXPECT_EQ(right.code, 0) << right.output;
  for (const Mistake& mistake : kMistakes) {
    SCOPED_TRACE(mistake.name);
    const Ended ended = plan(mistake.name);
    EXPECT_EQ(ended.code, 2) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("rhea: error: "));
    for (const std::string& text : mistake.said) EXPECT_THAT(ended.output, HasSubstr(text));
  }
}

TEST_F(Outside, TheRefusalOfAnOutsideRowsKernelIsSaidOnceForItsTypes) {
  const std::string refused = plan("accepts refuses").output;
  EXPECT_EQ(count(refused, "my_twice(f32[32,256] -> f32[32,256]): kernel my_kernel of "), 1)
      << refused;
  EXPECT_THAT(refused, HasSubstr("broken.cpp refused: not today"));
  EXPECT_EQ(count(plan("plan is right").output, "kernel my_kernel of "), 0);
}

}  // namespace
}  // namespace rhea
