// Sections of the run's config as nodes that overrides replace, and sections that are plain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "rhea/config/command_line.h"
#include "rhea/config/derive.h"
#include "rhea/config/json.h"
#include "rhea/config/override.h"
#include "rhea/config/trainer_config.h"
#include "rhea/config/traverse.h"
#include "tests/support/error_of.h"

namespace rhea::config {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

// A section with a field more.
template <class Base>
struct Own : Base {
  double own = 1;
  void fields(Visitor& v) override {
    Base::fields(v);
    v("own", own, "a field more");
  }
};

// The name of the override that replaces the node at `path`.
std::string name_of(std::string path) {
  std::ranges::replace(path, '.', '_');
  return "own_" + path;
}

template <class Base>
void add_own(OverrideRegistry& registry, const std::string& path) {
  registry.add<Base>(
      name_of(path), {.fqns = {path}},
      [](const Base& stock) {
        return derive<Own<Base>>(stock, {{"own", 2.5}});
      },
      "program");
}

struct Section {
  std::string path;
  const char* stock;  // name of its type
  void (*add)(OverrideRegistry& registry, const std::string& path);
};
void PrintTo(const Section& section, std::ostream* out) { *out << section.path; }

const std::vector<Section>& sections() {
  static const std::vector<Section> kSections = {
      {"profiler", "ProfilerConfig", add_own<ProfilerConfig>},
      {"metrics", "MetricsConfig", add_own<MetricsConfig>},
      {"tokenizer", "TokenizerConfig", add_own<TokenizerConfig>},
      {"dataloader", "DataloaderConfig", add_own<DataloaderConfig>},
      {"optimizer", "AdamW.Config", add_own<OptimizerConfig>},
      {"lr_scheduler", "LrSchedulerConfig", add_own<LrSchedulerConfig>},
      {"checkpoint", "CheckpointConfig", add_own<CheckpointConfig>},
      {"validator", "ValidatorConfig", add_own<ValidatorConfig>},
      {"validator.dataloader", "DataloaderConfig", add_own<DataloaderConfig>},
      {"loss", "ChunkedLossConfig", add_own<ChunkedLossConfig>},
      {"loss.loss_fn", "CrossEntropyLossConfig", add_own<CrossEntropyLossConfig>}};
  return kSections;
}

template <class Plain>
void add_same(OverrideRegistry& registry, const std::string& path) {
  registry.add<Plain>(
      name_of(path), {}, [](const Plain& stock) { return stock; }, "program");
}

const std::vector<Section>& plain_sections() {
  static const std::vector<Section> kSections = {
      {"hf_overrides", "HfOverridesConfig", add_same<HfOverridesConfig>},
      {"training", "TrainingConfig", add_same<TrainingConfig>},
      {"parallelism", "ParallelismConfig", add_same<ParallelismConfig>},
      {"activation_checkpoint", "ActivationCheckpointConfig", add_same<ActivationCheckpointConfig>},
      {"compile", "CompileConfig", add_same<CompileConfig>},
      {"comm", "CommConfig", add_same<CommConfig>},
      {"debug", "DebugConfig", add_same<DebugConfig>},
      {"override", "OverrideConfig", add_same<OverrideConfig>},
      {"executor", "ExecutorConfig", add_same<ExecutorConfig>}};
  return kSections;
}

std::vector<std::string> paths(const std::vector<Section>& table) {
  std::vector<std::string> found;
  for (const Section& section : table) found.push_back(section.path);
  return found;
}

// Applies the overrides of these nodes; returns the log.
std::string replace(TrainerConfig& run, const std::vector<std::string>& nodes) {
  OverrideRegistry registry;
  std::vector<std::string> imports;
  for (const auto* table : {&sections(), &plain_sections()})
    for (const Section& section : *table) section.add(registry, section.path);
  for (const std::string& path : nodes) imports.push_back(name_of(path));
  testing::internal::CaptureStdout();
  try {
    apply_overrides(run, imports, registry, nullptr);
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  return testing::internal::GetCapturedStdout();
}

const Config* node_at(TrainerConfig& run, const std::string& path) {
  const Config* found = nullptr;
  traverse(run, [&](const Node& node) {
    if (node.path == path) found = &node.config;
    return true;
  });
  return found;
}

// A section that comes later is in one of the tables, too.
TEST(OverrideSections, TheTablesHaveThemAll) {
  TrainerConfig run;
  std::vector<std::string> slots, plain;
  traverse(run, [&](const Node& node) {
    if (node.path == "model_spec") return false;
    if (node.slot != nullptr)
      slots.push_back(node.path);
    else if (node.depth == 0)
      plain.push_back(node.path);
    return true;
  });
  EXPECT_THAT(slots, UnorderedElementsAreArray(paths(sections())));
  EXPECT_THAT(plain, UnorderedElementsAreArray(paths(plain_sections())));
}

class OverrideSection : public testing::TestWithParam<Section> {};

TEST_P(OverrideSection, IsReplacedAndItsNewFieldIsAnOption) {
  const auto& [path, stock, add] = GetParam();
  TrainerConfig run;
  const std::string log = replace(run, {path});
  EXPECT_THAT(
      log, AllOf(HasSubstr("[Override] " + name_of(path) + ": " + path + " " + stock + " -> Own\n"),
                 HasSubstr("Applied 1 override(s)\n")));
  const Config* node = node_at(run, path);
  ASSERT_NE(node, nullptr);
  ASSERT_NE(node->replaced, nullptr);
  EXPECT_EQ(node->replaced->by, name_of(path));
  EXPECT_EQ(node->replaced->path, path);
  EXPECT_EQ(type_name(*node->replaced->stock), stock);
  EXPECT_THAT(to_json(*node), HasSubstr("\"own\": 2.5"));

  Report report;
  apply_options(std::vector<std::string>{"--" + path + ".own=7"}, run, report);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_THAT(to_json(run, -1), HasSubstr("\"own\": 7.0"));
}

INSTANTIATE_TEST_SUITE_P(All, OverrideSection, testing::ValuesIn(sections()),
                         [](const auto& test) { return name_of(test.param.path); });

class PlainSection : public testing::TestWithParam<Section> {};

TEST_P(PlainSection, IsRefusedByName) {
  const auto& [path, stock, add] = GetParam();
  TrainerConfig run;
  EXPECT_EQ(support::error_of([&] { replace(run, {path}); }),
            "Override '" + name_of(path) + "': " + stock + " (" + path +
                ") cannot be overridden; pick the component's Config");
}

INSTANTIATE_TEST_SUITE_P(All, PlainSection, testing::ValuesIn(plain_sections()),
                         [](const auto& test) { return name_of(test.param.path); });

TEST(OverrideSections, AValidatorAndItsLoaderAreReplacedByOneOverride) {
  TrainerConfig run;
  const std::string before = to_json(run);
  EXPECT_EQ(support::error_of([&] {
              replace(run, {"validator.dataloader", "validator"});
            }),
            "Override 'own_validator' claims 'validator', an ancestor of 'validator.dataloader' "
            "claimed by 'own_validator_dataloader'. Nested overrides are order-dependent; narrow "
            "their fqns selectors.");
  EXPECT_EQ(to_json(run), before);
}

TEST(OverrideSections, TheTwoLoadersAreTwoNodes) {
  TrainerConfig run;
  EXPECT_THAT(replace(run, {"validator.dataloader", "dataloader"}),
              HasSubstr("Applied 2 override(s)"));
  EXPECT_EQ(run.dataloader->dataset, "debug_text");
  EXPECT_EQ(run.validator->dataloader->dataset, "c4_validation");
  EXPECT_EQ(type_name(*run.validator), "ValidatorConfig");

  TrainerConfig other;
  EXPECT_THAT(replace(other, {"validator", "dataloader"}), HasSubstr("Applied 2 override(s)"));
  EXPECT_EQ(type_name(*other.validator->dataloader), "DataloaderConfig");
  EXPECT_EQ(other.validator->dataloader->dataset, "c4_validation");
}

TEST(OverrideSections, ARecipesOwnSectionIsAnOptionAndInTheFile) {
  TrainerConfig run;
  Own<LrSchedulerConfig> schedule;
  schedule.warmup_steps = 3;
  run.lr_scheduler = schedule;
  Report report;
  apply_options(std::vector<std::string>{"--lr_scheduler.own", "0.5"}, run, report);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(run.lr_scheduler.as<Own<LrSchedulerConfig>>()->own, 0.5);
  EXPECT_EQ(run.lr_scheduler->warmup_steps, 3);
  const TrainerConfig copy = run;
  EXPECT_THAT(to_json(copy, -1),
              HasSubstr(R"("lr_scheduler": {"_type": "Own", "warmup_steps": 3,)"));
}

}  // namespace
}  // namespace rhea::config
