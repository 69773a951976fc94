// Overrides: matching, conflicts, replacement, arguments, derive, and every error of the spec.
#include "rhea/config/override.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rhea/config/derive.h"
#include "rhea/config/json.h"
#include "rhea/config/trainer_config.h"
#include "rhea/config/traverse.h"

namespace rhea::override_test {
namespace {

using config::apply_overrides;
using config::OverrideRegistry;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

struct Names {
  std::string_view rope;
};
constexpr Names kNative{"rope"}, kPublished{"rotary_emb"};

struct Rope {
  struct Config : rhea::Config {
    double theta = 1e4;
    void fields(Visitor& v) override { v("theta", theta, "base of the frequencies"); }
  };
};
struct CosSinRope {
  struct Config : Rope::Config {};
};
struct MyRope {
  struct Config : Rope::Config {
    int64_t block = 64;
    void fields(Visitor& v) override {
      Rope::Config::fields(v);
      v("block", block, "positions of a block");
    }
  };
};
struct Norm {
  struct Config : rhea::Config {
    double eps = 1e-5;
    void fields(Visitor& v) override { v("eps", eps, "added"); }
  };
};
struct Qkv {
  struct Config : rhea::Config {
    Slot<Norm::Config> q_norm;
    void fields(Visitor& v) override { v("q_norm", q_norm, "norm of queries"); }
  };
};
struct Attention {
  struct Config : rhea::Config {
    const Names* names = &kNative;
    Slot<Rope::Config> rope = CosSinRope::Config{};
    Slot<Qkv::Config> qkv;
    double scale = 1;
    void fields(Visitor& v) override {
      v.names(names);
      v(names->rope, rope, "positions");
      v.inlined("qkv", qkv);
      v("scale", scale, "of the scores");
    }
  };
};
struct WideAttention {
  struct Config : Attention::Config {
    int64_t window = 0;
    void fields(Visitor& v) override {
      Attention::Config::fields(v);
      v("window", window, "tokens that are seen");
    }
  };
};
// Shares names with Attention::Config, not its type.
struct OtherAttention {
  struct Config : rhea::Config {
    const Names* names = &kNative;
    Slot<Rope::Config> rope;
    int64_t extra = 7;
    void fields(Visitor& v) override {
      v.names(names);
      v(names->rope, rope, "positions");
      v("extra", extra, "not in the source");
    }
  };
};
struct Clash {
  struct Config : rhea::Config {
    std::string scale;
    void fields(Visitor& v) override { v("scale", scale, "a text here"); }
  };
};
struct Model {
  struct Config : rhea::Config {
    std::vector<Slot<Attention::Config>> layers;
    void fields(Visitor& v) override { v("layers", layers, "blocks"); }
  };
};

TrainerConfig run_of(int num_layers) {
  Model::Config model;
  for (int i = 0; i < num_layers; ++i) model.layers.emplace_back(Attention::Config{});
  TrainerConfig run;
  run.model_spec.model = model;
  return run;
}

struct BlockArguments : Config {
  int64_t block = 64;
  std::string mode = "fast";
  void fields(Visitor& v) override {
    v("block", block, "positions of a block", at_least(1));
    v("mode", mode, "how", one_of{"fast", "exact"});
  }
};

MyRope::Config my_rope(const Rope::Config& stock) { return derive<MyRope::Config>(stock); }

// Modules are names of origins.
std::optional<std::string> load(const std::string& module) {
  if (module == "kernels" || module == "kernels.cpp") return "kernels.cpp";
  if (module == "two.parts") return "two.parts.cpp";
  if (module == "empty") return "empty.cpp";
  if (module == "broken") throw Error("3 errors in broken.cpp");
  return std::nullopt;
}

OverrideRegistry registry() {
  OverrideRegistry r;
  r.add<Rope::Config>("my_rope", {}, my_rope, "kernels.cpp");
  r.add<Norm::Config>(
      "my_norm", {}, [](Norm::Config stock) { return stock.eps = 1, stock; }, "kernels.cpp");
  r.add<Rope::Config>("two.parts.rope", {}, my_rope, "two.parts.cpp");
  r.add<CosSinRope::Config>(
      "blocked", {.exact = true},
      [](const CosSinRope::Config& stock, const BlockArguments& arguments) {
        auto made = derive<MyRope::Config>(stock);
        made.block = arguments.block;
        return made;
      },
      "program");
  r.add<Rope::Config>("exact_base", {.exact = true}, my_rope, "program");
  r.add<Rope::Config>("tens", {.fqns = {"layers.1[0-9].rope"}}, my_rope, "program");
  r.add<Rope::Config>("others", {.fqns = {"layers.[0-9].rope", "*.2?.rope"}}, my_rope, "program");
  r.add<Rope::Config>("far", {.fqns = {"layers.99.rope"}, .description = "the last table"}, my_rope,
                      "program");
  r.add<Attention::Config>(
      "attention", {},
      [](const Attention::Config& stock) { return derive<WideAttention::Config>(stock); },
      "program");
  r.add<Qkv::Config>(
      "qkv", {}, [](const Qkv::Config& stock) { return stock; }, "program");
  r.add<Rope::Config>(
      "throws", {},
      [](const Rope::Config&) -> MyRope::Config { throw Error("no tables on this machine"); },
      "program");
  r.add<Rope::Config>(
      "wrong", {}, [](const Rope::Config&) { return Norm::Config{}; }, "program");
  r.add<TrainingConfig>(
      "section", {}, [](const TrainingConfig& stock) { return stock; }, "program");
  r.add<MyRope::Config>("absent_type", {}, my_rope, "program");
  r.add<AdamW::Config>(
      "slow_adamw", {}, [](const AdamW::Config& stock) { return derive<OptimizerConfig>(stock); },
      "program");
  return r;
}

struct Outcome {
  config::Applied applied;
  TrainerConfig run;
  std::string log;
};

Outcome apply(std::vector<std::string> imports, int num_layers = 2) {
  static const OverrideRegistry kRegistry = registry();
  Outcome out{{}, run_of(num_layers), ""};
  testing::internal::CaptureStdout();
  try {
    out.applied = apply_overrides(out.run, imports, kRegistry, load);
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  out.log = testing::internal::GetCapturedStdout();
  return out;
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

const Attention::Config& layer(const TrainerConfig& run, size_t i) {
  return *run.model_spec.model.as<Model::Config>()->layers[i];
}

TEST(Override, ReplacesEveryNodeOfItsTypeAndSaysSo) {
  const auto out = apply({"kernels:my_rope"});
  EXPECT_EQ(out.applied.nodes.size(), 2U);
  EXPECT_THAT(out.log, HasSubstr("[Override] my_rope: model_spec.model.layers.0.rope "
                                 "CosSinRope.Config -> MyRope.Config\n"));
  EXPECT_THAT(out.log, HasSubstr("Applied 2 override(s)\n"));
  EXPECT_EQ(type_name(*layer(out.run, 1).rope), "MyRope.Config");
  const auto& replaced = layer(out.run, 1).rope->replaced;
  ASSERT_NE(replaced, nullptr);
  EXPECT_EQ(replaced->by, "my_rope");
  EXPECT_EQ(replaced->path, "model_spec.model.layers.1.rope");
  EXPECT_EQ(type_name(*replaced->stock), "CosSinRope.Config");
  EXPECT_EQ(layer(out.run, 1).qkv->replaced, nullptr);
}

TEST(Override, AModuleMayHaveKernelsOnly) {
  const auto out = apply({"empty"});
  EXPECT_THAT(out.log, AllOf(HasSubstr("empty.cpp registers no override"),
                             HasSubstr("Applied 0 override(s)")));
}

TEST(Override, NothingHappensUnlessItIsNamed) {
  const auto out = apply({});
  EXPECT_EQ(out.log, "");
  EXPECT_EQ(type_name(*layer(out.run, 0).rope), "CosSinRope.Config");
}

TEST(Override, AModuleMeansAllOfItAndANameOnlyThat) {
  EXPECT_THAT(apply({"kernels.cpp"}).applied.names(), ElementsAre("my_rope", "my_norm"));
  EXPECT_THAT(apply({"kernels"}).applied.names(), ElementsAre("my_rope", "my_norm"));
  EXPECT_THAT(apply({"kernels.my_norm"}).applied.names(), ElementsAre("my_norm"));
  EXPECT_THAT(apply({"kernels.cpp:my_norm"}).applied.names(), ElementsAre("my_norm"));
  // "two.parts" is a module and could be a name; an override may carry its module's name.
  EXPECT_THAT(apply({"two.parts"}).applied.names(), ElementsAre("two.parts.rope"));
  EXPECT_THAT(apply({"two.parts.rope"}).applied.names(), ElementsAre("two.parts.rope"));
  EXPECT_THAT(apply({"two.parts:rope"}).applied.names(), ElementsAre("two.parts.rope"));
  EXPECT_THAT(apply({"blocked"}).applied.names(), ElementsAre("blocked"));
}

TEST(Override, GlobsMatchBelowTheModelAndDisjointOnesGoTogether) {
  const auto tens = apply({"tens"}, 25);
  EXPECT_EQ(count(tens.log, "[Override] tens: model_spec.model.layers.1"), 10U);
  EXPECT_EQ(tens.applied.nodes.size(), 10U);
  const auto both = apply({"others", "tens"}, 25);
  EXPECT_EQ(both.applied.nodes.size(), 25U);
  EXPECT_EQ(both.applied.nodes[10].override_name, "tens");
  // The order of the entries changes nothing.
  const auto other_way = apply({"tens", "others"}, 25);
  ASSERT_EQ(other_way.applied.nodes.size(), both.applied.nodes.size());
  for (size_t i = 0; i < both.applied.nodes.size(); ++i) {
    EXPECT_EQ(other_way.applied.nodes[i].path, both.applied.nodes[i].path);
    EXPECT_EQ(other_way.applied.nodes[i].override_name, both.applied.nodes[i].override_name);
  }
}

TEST(Override, ExactMeansTheTypeItself) {
  EXPECT_EQ(apply({"blocked"}).applied.nodes.size(), 2U);
  const auto none = apply({"exact_base"});
  EXPECT_EQ(none.applied.nodes.size(), 0U);
  EXPECT_THAT(none.log,
              HasSubstr("override.imports=[exact_base] produced no replacements. No node has "
                        "exactly type Rope.Config; the nearest types are: CosSinRope.Config, "
                        "derived from it (model_spec.model.layers.0.rope), "));
  EXPECT_THAT(none.log, HasSubstr("; without `exact` the derived ones match"));
  EXPECT_THAT(none.log, HasSubstr("Applied 0 override(s)"));
}

TEST(Override, NoMatchNamesWhatIsNear) {
  EXPECT_THAT(
      apply({"far"}, 12).log,
      AllOf(HasSubstr(
                "override.imports=[far] (the last table) produced no replacements. No node of type "
                "Rope.Config matches fqns [layers.99.rope]; the nearest are: "
                "model_spec.model.layers."),
            HasSubstr("WARNING")));
  EXPECT_THAT(apply({"absent_type"}).log,
              HasSubstr("No node has type MyRope.Config; the nearest types are: "
                        "CosSinRope.Config (model_spec.model.layers.0.rope), "));
}

TEST(Override, ArgumentsComeFromTheLineAndFromCode) {
  const auto line = apply({R"(blocked={"block": 256})"});
  EXPECT_THAT(line.log, HasSubstr("CosSinRope.Config -> MyRope.Config with block=256\n"));
  EXPECT_EQ(layer(line.run, 0).rope.as<MyRope::Config>()->block, 256);
  TrainerConfig run;
  run.override.imports = {{"blocked", {{"block", 128}, {"mode", "exact"}}}, "kernels"};
  EXPECT_THAT(run.override.imports,
              ElementsAre(R"(blocked={"block": 128, "mode": "exact"})", "kernels"));
  EXPECT_THAT(apply({run.override.imports[0]}).log, HasSubstr(" with block=128, mode=exact\n"));
  run.override.imports = {"kernels.cpp"};
  EXPECT_THAT(run.override.imports, ElementsAre("kernels.cpp"));
}

TEST(Override, NodesWithoutASectionOfTheirOwnAreNodesToo) {
  const auto out = apply({"qkv"});
  ASSERT_EQ(out.applied.nodes.size(), 2U);
  EXPECT_EQ(out.applied.nodes[0].path, "model_spec.model.layers.0.qkv");
  EXPECT_NE(layer(out.run, 0).qkv->replaced, nullptr);
}

TEST(Override, TheOptimizerIsOneNode) {
  const auto out = apply({"slow_adamw"});
  EXPECT_THAT(out.log, HasSubstr("[Override] slow_adamw: optimizer AdamW.Config -> "
                                 "OptimizerConfig\n"));
  EXPECT_EQ(out.run.optimizer->param_groups[0].optimizer_kwargs.lr, 8e-4);
}

struct BadImport {
  const char* name;
  std::vector<std::string> imports;
  std::vector<const char*> texts;
};
void PrintTo(const BadImport& bad, std::ostream* out) { *out << bad.name; }

class OverrideError : public testing::TestWithParam<BadImport> {};

TEST_P(OverrideError, HasItsTextAndChangesNothing) {
  static const OverrideRegistry kRegistry = registry();
  TrainerConfig run = run_of(2);
  const std::string before = config::to_json(run);
  try {
    apply_overrides(run, GetParam().imports, kRegistry, load);
    FAIL() << "was accepted";
  } catch (const Error& error) {
    for (const char* text : GetParam().texts) EXPECT_THAT(error.what(), HasSubstr(text));
  }
  EXPECT_EQ(config::to_json(run), before);
}

INSTANTIATE_TEST_SUITE_P(
    Spec, OverrideError,
    testing::Values(
        BadImport{"NoSuchModule",
                  {"absent.cpp"},
                  {"Failed to import override target 'absent.cpp': module 'absent.cpp' could not "
                   "be imported: there is no absent.cpp in the working directory"}},
        BadImport{"NoSuchModuleOfAName",
                  {"absent:rope"},
                  {"Failed to import override target 'absent:rope': module 'absent' could not be "
                   "imported: there is no absent.cpp or absent.so"}},
        BadImport{"ModuleThatDoesNotCompile",
                  {"broken:rope"},
                  {"Failed to import override target 'broken:rope': module 'broken' could not be "
                   "imported: 3 errors in broken.cpp"}},
        BadImport{"NoSuchName",
                  {"kernels:rope"},
                  {"override.imports target 'kernels:rope' names no registered override. "
                   "kernels.cpp has: my_rope, my_norm"}},
        BadImport{"NoSuchNameWithADot",
                  {"kernels.rope"},
                  {"override.imports target 'kernels.rope' names no registered override."}},
        BadImport{"ArgumentsForAModuleWithoutOverrides",
                  {R"(empty={"block": 1})"},
                  {"override.imports target 'empty' names no registered override."}},
        BadImport{"NamedTwice",
                  {"kernels:my_rope", "kernels.my_rope"},
                  {"Override 'my_rope' is named by two entries. List it once."}},
        BadImport{"NamedThroughItsModule",
                  {"kernels:my_norm", "kernels"},
                  {"Override 'my_norm' is named by two entries. List it once."}},
        BadImport{"ArgumentsAreNoObject",
                  {"blocked=256"},
                  {"override.imports kwargs for 'blocked' must be a JSON object, got 256"}},
        BadImport{"ArgumentsAreNoJson",
                  {"blocked={block:1}"},
                  {"override.imports kwargs for 'blocked' must be a JSON object, got {block:1}"}},
        BadImport{"NoArguments",
                  {"blocked="},
                  {"override.imports kwargs for 'blocked' must be a JSON object, got nothing"}},
        BadImport{"UnknownArgument",
                  {R"(blocked={"blok": 1})"},
                  {"'blocked': unknown argument 'blok'; accepted: block: int, mode: text"}},
        BadImport{"ArgumentOfAnotherType",
                  {R"(blocked={"block": "x"})"},
                  {"'blocked': argument 'block' must be int, got \"x\"; accepted: block: int"}},
        BadImport{"ArgumentOutOfRange",
                  {R"(blocked={"block": 0})"},
                  {"'blocked'", "block = 0: must be at least 1"}},
        BadImport{"ArgumentsOfAnOverrideWithoutAny",
                  {R"(kernels:my_rope={"block": 1})"},
                  {"'my_rope': unknown argument 'block'; accepted: none"}},
        BadImport{"TwoClaims",
                  {"kernels:my_rope", "tens", "others"},
                  {"Overrides 'my_rope' and 'others' both claim node "
                   "'model_spec.model.layers.0.rope'. Narrow their fqns selectors so they target "
                   "disjoint nodes."}},
        BadImport{"ClaimInsideAClaim",
                  {"kernels:my_rope", "attention"},
                  {"Override 'attention' claims 'model_spec.model.layers.0', an ancestor of "
                   "'model_spec.model.layers.0.rope' claimed by 'my_rope'. Nested overrides are "
                   "order-dependent; narrow their fqns selectors."}},
        BadImport{"ClaimInsideANodeWithoutASection",
                  {"qkv", "kernels:my_norm"},
                  {"Override 'qkv' claims 'model_spec.model.layers.0.qkv', an ancestor of "
                   "'model_spec.model.layers.0.q_norm' claimed by 'my_norm'."}},
        BadImport{"FactoryThrows",
                  {"throws"},
                  {"Override 'throws' of program failed at 'model_spec.model.layers.0.rope': no "
                   "tables on this machine"}},
        BadImport{"FactoryMakesAnotherInterface",
                  {"wrong"},
                  {"Override 'wrong' of program failed at 'model_spec.model.layers.0.rope'",
                   "expected Rope.Config or a config derived from it"}},
        BadImport{"PlainStruct",
                  {"section"},
                  {"TrainingConfig (training) cannot be overridden; pick the component's "
                   "Config"}}),
    [](const auto& test) { return test.param.name; });

TEST(Override, TheSameOverrideOnANodeAndBelowItCountsOnce) {
  OverrideRegistry r;
  r.add<LossConfig>(
      "loss", {}, [](const LossConfig&) { return CrossEntropyLossConfig{}; }, "program");
  TrainerConfig run;  // a chunked loss that holds another one
  testing::internal::CaptureStdout();
  const auto applied = apply_overrides(run, std::vector<std::string>{"loss"}, r, nullptr);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              HasSubstr("[Override] loss: loss ChunkedLossConfig -> CrossEntropyLossConfig\n"));
  EXPECT_EQ(applied.nodes.size(), 1U);
}

TEST(OverrideRegistry, RefusesNamesAndTargets) {
  OverrideRegistry r;
  const auto refused = [&](auto&& add) -> std::string {
    try {
      add();
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  r.add<Rope::Config>("x", {}, my_rope, "a.cpp");
  EXPECT_THAT(refused([&] { r.add<Rope::Config>("x", {}, my_rope, "b.cpp"); }),
              AllOf(HasSubstr("Override 'x' is already registered"), HasSubstr("a.cpp"),
                    HasSubstr("b.cpp")));
  EXPECT_THAT(
      refused([&] { r.add<Rope::Config>("glob", {.fqns = {"layers.[0"}}, my_rope, "b.cpp"); }),
      AllOf(HasSubstr("Override 'glob' of b.cpp"), HasSubstr("layers.[0")));
  EXPECT_THAT(refused([&] { r.add<Rope::Config>("my rope", {}, my_rope, "b.cpp"); }),
              HasSubstr("'my rope'"));
  EXPECT_THAT(refused([&] {
                r.add<ModelSpec>(
                    "y", {}, [](const ModelSpec& s) { return s; }, "b.cpp");
              }),
              HasSubstr("ModelSpec cannot be overridden; pick the component's Config"));
  EXPECT_THAT(refused([&] {
                r.add<TrainerConfig>(
                    "y", {}, [](const TrainerConfig& s) { return s; }, "b.cpp");
              }),
              HasSubstr("TrainerConfig cannot be overridden; pick the component's Config"));
}

TEST(Derive, CopiesWhatIsShared) {
  Attention::Config stock;
  stock.names = &kPublished;
  stock.scale = 3;
  stock.rope->theta = 5;
  const auto wide = derive<WideAttention::Config>(stock, {{"window", 128}, {"scale", 0.5}});
  EXPECT_EQ(wide.names, &kPublished);
  EXPECT_EQ(wide.window, 128);
  EXPECT_EQ(wide.scale, 0.5);
  // By name: the table of names comes along, so that the fields are called the same.
  const auto other = derive<OtherAttention::Config>(stock);
  EXPECT_EQ(other.names, &kPublished);
  EXPECT_EQ(other.rope->theta, 5);
  EXPECT_EQ(type_name(*other.rope), "CosSinRope.Config");
  EXPECT_EQ(other.extra, 7);
}

TEST(Derive, RefusesDeltasAndTypes) {
  const Attention::Config stock;
  try {
    derive<WideAttention::Config>(stock, {{"windw", 1}, {"window", 1}, {"no", "x"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "derive() got deltas for fields not on WideAttention.Config: [windw, no]");
  }
  EXPECT_THROW(derive<WideAttention::Config>(stock, {{"window", "wide"}}), Error);
  try {
    derive<Clash::Config>(stock);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("field 'scale' of Clash.Config has another type than that "
                                        "of Attention.Config"));
  }
}

}  // namespace
}  // namespace rhea::override_test
