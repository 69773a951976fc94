// Overrides in files of a user: where a file may lie, and what is said when something is wrong.
#include "tests/plugin/plugin_test.h"

namespace rhea {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class OverrideErrors : public PluginTest {
 protected:
  Ended plan(const std::string& imports,
             std::vector<std::pair<std::string, std::string>> environment = {}) const {
    return rhea({"plan", "--module=qwen3", "--config=qwen3_debugmodel", "--training.seq_len=64",
                 "--override.imports=" + imports},
                std::move(environment));
  }
};

// `body` is what the factory of an override of RMS norms does. It begins in line 8.
std::string norm(const std::string& body) {
  return R"(#include "rhea/nn/norm.h"
#include "rhea/plugin/plugin.h"
struct Arguments : rhea::Config {
  int64_t block = 64;
  void fields(rhea::Visitor& v) override { v("block", block, "positions", rhea::at_least(1)); }
};
static rhea::nn::RMSNorm::Config made(const rhea::nn::RMSNorm::Config& stock) {
)" + body +
         R"(
  return stock;
}
RHEA_PLUGIN(p) {
  p.override<rhea::nn::RMSNorm::Config>(
      "my_norm", {.fqns = {"norm"}},
      [](const rhea::nn::RMSNorm::Config& stock, const Arguments&) { return made(stock); });
}
)";
}

TEST_F(OverrideErrors, AnExceptionOfAFactoryNamesNodeFileAndLine) {
  write("throws.cpp", norm("  throw rhea::Error(\"no tables of width {}\", 3);"));
  const Ended ended = plan("throws.cpp");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("Override 'my_norm' of "),
                                  HasSubstr("failed at 'model_spec.model.norm': no tables of"),
                                  HasSubstr("throws.cpp:8")));
  write("number.cpp", norm("  throw 7;"));
  const Ended number = plan("number.cpp");
  EXPECT_EQ(number.code, 2);
  EXPECT_THAT(number.output,
              AllOf(HasSubstr("something that is no std::exception"), HasSubstr("number.cpp:8")));
}

TEST_F(OverrideErrors, AnExceptionOfAReplacementNamesOverrideNodeFileAndLine) {
  write("forward.cpp", R"(#include "rhea/nn/norm.h"
#include "rhea/plugin/plugin.h"
struct MyNorm : rhea::nn::RMSNorm::Config {
  rhea::nn::Value forward(rhea::nn::Trace&, rhea::nn::Value) const override {
    throw rhea::Error("no tables here");  // line 5
  }
};
RHEA_PLUGIN(p) {
  p.override<rhea::nn::RMSNorm::Config>(
      "my_norm", {.fqns = {"norm"}},
      [](const rhea::nn::RMSNorm::Config& stock) { return rhea::derive<MyNorm>(stock); });
}
)");
  const Ended ended = plan("forward.cpp");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("Override 'my_norm' at model_spec.model.norm: no tables here"),
                    HasSubstr("forward.cpp:5")));
}

TEST_F(OverrideErrors, AFusedProductOfAdaptedLayersIsRefusedByOverrideAndNode) {
  write("lora.cpp", R"(#include "rhea/models/converters/lora.h"
#include "rhea/models/qwen3/qwen3.h"
#include "rhea/plugin/plugin.h"
rhea::TrainerConfig lora() {
  rhea::TrainerConfig c;
  c.model_spec = rhea::models::qwen3::model_registry(
      "debugmodel", {rhea::LoRAConverter({.target_modules = {"w1", "w3"}})});
  return c;
}
RHEA_CONFIG(lora)
)");
  const Ended ended = rhea({"plan", "--module=lora.cpp", "--config=lora", "--training.seq_len=64",
                            "--override.imports=fused_swiglu.fused_swiglu"});
  EXPECT_EQ(ended.code, 2) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("Override 'fused_swiglu.fused_swiglu' at "
                                            "model_spec.model.layers.0.feed_forward: "),
                                  HasSubstr("w1 is a LoRALinear.Config"), HasSubstr("fqns")));
}

TEST_F(OverrideErrors, JsonThatIsNoneIsRefusedWithItsPlace) {
  write("mine.cpp", norm(""));
  EXPECT_THAT(plan(R"(mine.cpp:my_norm={"block": 1,})").output,
              AllOf(HasSubstr("override.imports kwargs for 'my_norm' must be a JSON object, got "
                              R"({"block": 1,}: parse error at line 1, column 13)")));
  EXPECT_THAT(plan(R"(mine.cpp:my_norm={"block": 1, "block": 2})").output,
              HasSubstr("kwargs for 'my_norm': argument 'block' is given twice"));
  EXPECT_THAT(plan("mine.cpp:my_norm=[1]").output,
              HasSubstr("kwargs for 'my_norm' must be a JSON object, got [1]"));
}

TEST_F(OverrideErrors, FilesMayLieAnywhere) {
  std::filesystem::create_directories(folder() / "far: away");
  write("far: away/mine.cpp", norm(""));
  const std::string home = (folder() / "far: away").string();
  // Blanks and commas separate entries, so only the home folder has them here.
  std::filesystem::create_directories(folder() / "near:by");
  write("near:by/mine.cpp", norm(""));
  const std::string absolute = (folder() / "near:by/mine").string();
  for (const std::string& imports :
       {absolute + ".cpp", absolute, absolute + ".cpp:my_norm", absolute + ".my_norm",
        absolute + R"(:my_norm={"block": 3})", std::string("~/mine.cpp"),
        std::string("~/mine.cpp:my_norm"), std::string("~/mine.my_norm")}) {
    const Ended ended = plan(imports, {{"HOME", home}});
    EXPECT_EQ(ended.code, 0) << imports << "\n" << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("[Override] my_norm: model_spec.model.norm ")) << imports;
  }
  EXPECT_THAT(plan("~/absent.cpp", {{"HOME", home}}).output,
              HasSubstr("module '~/absent.cpp' could not be imported: there is no ~/absent.cpp"));
}

TEST_F(OverrideErrors, AFileWithoutOverridesIsToldOnce) {
  write("kernels.cpp", R"(#include "rhea/plugin/plugin.h"
RHEA_PLUGIN(p) { (void)p; }
)");
  const Ended ended = plan("kernels.cpp");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(count(ended.output, "registers no override"), 1) << ended.output;
}

}  // namespace
}  // namespace rhea
