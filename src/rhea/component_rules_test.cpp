// Words that name nothing of the tables, and words that a user's file adds.
#include "rhea/component_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "rhea/components/lr_scheduler/lr_scheduler.h"
#include "rhea/components/metrics/sinks.h"

namespace rhea {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> problems(const TrainerConfig& config, bool reads_files = true) {
  std::vector<config::Problem> found;
  check_components(config, reads_files, found);
  std::vector<std::string> texts;
  for (const auto& problem : found) {
    texts.push_back(to_string(problem));
    EXPECT_EQ(problem.anywhere, problem.path.find("dataset_path") == std::string::npos)
        << texts.back();
  }
  return texts;
}

TEST(ComponentRules, TheDefaultsAreFine) { EXPECT_THAT(problems(TrainerConfig()), IsEmpty()); }

TEST(ComponentRules, EachUnknownWordIsReportedWithTheKnownOnes) {
  TrainerConfig config;
  config.optimizer->param_groups[0].optimizer_name = "Lion";
  config.lr_scheduler->decay_type = "exponential";
  config.metrics->sinks = {"jsonl", "prometheus"};
  config.tokenizer->kind = "words_of_mine";
  config.dataloader->dataset = "wiki";
  EXPECT_THAT(
      problems(config),
      ElementsAre(
          AllOf(HasSubstr("optimizer.param_groups.0.optimizer_name = 'Lion'"),
                HasSubstr("Optimizer Lion not added. Optimizers: AdamW, Adam, SGD")),
          "lr_scheduler.decay_type = 'exponential': expected one of: linear, sqrt, cosine",
          "metrics.sinks = 'prometheus': expected one of: console, jsonl, tensorboard",
          "tokenizer.kind = 'words_of_mine': expected one of: tokenizer_json, merges, "
          "sentencepiece, tiktoken, words",
          HasSubstr("Dataset wiki is not supported. Supported datasets are: [debug_text, ")));
}

TEST(ComponentRules, AllSourcesAreCheckedAndAPlanReadsNone) {
  TrainerConfig config;
  config.dataloader->sources.resize(2);
  config.dataloader->sources[0].dataset = "debug_text";
  config.dataloader->sources[1].dataset = "jsonl";
  config.validator->enable = true;
  EXPECT_THAT(
      problems(config),
      ElementsAre(HasSubstr("dataloader.sources.1.dataset_path = None: dataset jsonl needs"),
                  HasSubstr("validator.dataloader.dataset_path = None")));
  EXPECT_THAT(problems(config, /*reads_files=*/false), IsEmpty());
}

TEST(ComponentRules, WordsOfAUsersFileAreAccepted) {
  lr_scheduler::decays().add({"flat", [](double, const LrSchedulerConfig&) { return 1.0; }},
                             "mine.cpp");
  TrainerConfig config;
  config.lr_scheduler->decay_type = "flat";
  EXPECT_THAT(problems(config), IsEmpty());
  std::ostringstream out;
  print_components(out);
  EXPECT_THAT(out.str(), AllOf(HasSubstr("linear, sqrt, cosine, flat"),
                               HasSubstr("from outside: flat (mine.cpp)"),
                               HasSubstr("llama3, qwen3, transformers_modeling_backend")));
}

}  // namespace
}  // namespace rhea
