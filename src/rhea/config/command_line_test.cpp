// Command lines that are understood, the help text, and loading.
#include "rhea/config/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "rhea/config/canonicalize.h"
#include "rhea/config/help.h"
#include "rhea/config/json.h"
#include "rhea/config/leaf_text.h"
#include "rhea/config/load.h"
#include "rhea/config/option_index.h"
#include "rhea/config/test_recipe.h"

namespace rhea::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TrainerConfig good(const std::string& options) {
  const CommandLine line = parse(options);
  EXPECT_TRUE(line.report.ok()) << options << "\n" << line.report.text();
  return line.config;
}

TEST(CommandLine, ScalarsInEveryForm) {
  EXPECT_EQ(good("--training.steps 1_000").training.steps, 1000);
  EXPECT_EQ(good("--training.steps=12").training.steps, 12);
  EXPECT_EQ(good("--training.local-batch-size 3").training.local_batch_size, 3);
  EXPECT_EQ(good("--training.global_batch_size -1").training.global_batch_size, -1);
  EXPECT_EQ(good("--training.max_norm 5e-1").training.max_norm, 0.5);
  EXPECT_EQ(good("--debug.seed 7").debug.seed, 7);
  EXPECT_EQ(good("--debug.seed None").debug.seed, std::nullopt);
  EXPECT_EQ(good("--dump_folder a:b").dump_folder, "a:b");
}

TEST(CommandLine, RecipeBelowOptions) {
  const TrainerConfig c = good("--training.steps 3");
  EXPECT_EQ(c.training.seq_len, 128);
  EXPECT_EQ(c.training.steps, 3);
  EXPECT_EQ(parse_command_line(words("--module llama --config=llama3_8b"), test_registry())
                .report.problems.size(),
            0U);
}

TEST(CommandLine, Flags) {
  EXPECT_FALSE(good("--compile.no_enable").compile.enable);
  EXPECT_FALSE(good("--compile.no-enable").compile.enable);
  EXPECT_TRUE(good("--checkpoint.enable").checkpoint->enable);
  const TrainerConfig c = good("--optimizer.param_groups.0.optimizer_kwargs.nesterov");
  EXPECT_EQ(c.optimizer->param_groups[0].optimizer_kwargs.nesterov, true);
}

TEST(CommandLine, Lists) {
  EXPECT_THAT(good("--compile.components model,optimizer").compile.components,
              ElementsAre("model", "optimizer"));
  EXPECT_TRUE(good("--compile.components=").compile.components.empty());
  const TrainerConfig c = good("--parallelism.module_fqns_per_model_part a,b;c");
  ASSERT_TRUE(c.parallelism.module_fqns_per_model_part);
  EXPECT_THAT(*c.parallelism.module_fqns_per_model_part,
              ElementsAre(ElementsAre("a", "b"), ElementsAre("c")));
}

TEST(CommandLine, ListsOfStructsByIndex) {
  const TrainerConfig c = good(
      "--optimizer.param_groups.0.optimizer_kwargs.lr 3e-4 "
      "--optimizer.param_groups.1.optimizer_name SGD "
      "--optimizer.param_groups.1.optimizer_kwargs.momentum 0.9");
  ASSERT_EQ(c.optimizer->param_groups.size(), 2U);
  EXPECT_EQ(c.optimizer->param_groups[0].optimizer_kwargs.lr, 3e-4);
  EXPECT_EQ(c.optimizer->param_groups[0].optimizer_kwargs.weight_decay, 0.1);
  EXPECT_EQ(c.optimizer->param_groups[1].optimizer_name, "SGD");
  EXPECT_EQ(c.optimizer->param_groups[1].optimizer_kwargs.momentum, 0.9);
  EXPECT_TRUE(good("--optimizer.param_groups=").optimizer->param_groups.empty());
}

TEST(CommandLine, Unions) {
  EXPECT_EQ(good("activation-checkpoint:full").activation_checkpoint.mode, "full");
  EXPECT_EQ(good("--activation_checkpoint.mode memory-budget").activation_checkpoint.mode,
            "memory_budget");
  const TrainerConfig c = good("--loss.global_vocab_size 100 loss:CrossEntropyLoss");
  ASSERT_NE(c.loss.as<CrossEntropyLossConfig>(), nullptr);
  EXPECT_EQ(c.loss.as<CrossEntropyLossConfig>()->global_vocab_size, 100);
  EXPECT_EQ(good("--loss.num_chunks 4").loss.as<ChunkedLossConfig>()->num_chunks, 4);
}

TEST(CommandLine, SpellingBecomesCanonical) {
  EXPECT_EQ(
      good("--parallelism.pipeline_parallel_schedule gpipe").parallelism.pipeline_parallel_schedule,
      "GPipe");
  EXPECT_EQ(good("--dataloader.dataset Debug_Text").dataloader->dataset, "debug_text");
  EXPECT_EQ(good("--optimizer.implementation for_loop").optimizer->implementation, "for-loop");
  EXPECT_TRUE(good("--validator.steps 5").validator->dataloader->infinite);
  EXPECT_FALSE(good("--validator.dataloader.infinite").validator->dataloader->infinite);
}

TEST(CommandLine, Aliases) {
  EXPECT_EQ(good("--training.max_context_length 256").training.seq_len, 256);
  EXPECT_EQ(good("--training.max_context_length 256 --training.seq_len 256").training.seq_len, 256);
  EXPECT_EQ(good("--training.seq_len 256 --training.max_context_length 256").training.seq_len, 256);
  const TrainerConfig c = good(
      "--training.num_tokens_per_microbatch_per_dp_rank 512 --training.num_tokens_per_train_step "
      "4096 "
      "--parallelism.num_pp_microbatches 2 --training.max_context_length 256");
  EXPECT_EQ(c.parallelism.pipeline_parallel_microbatch_size, 2);
  EXPECT_EQ(c.training.local_batch_size, 4);
  EXPECT_EQ(c.training.global_batch_size, 16);
  EXPECT_EQ(good("--training.num_tokens_per_train_step -1").training.global_batch_size, -1);
  EXPECT_EQ(
      good("--parallelism.num_pp_microbatches 4").parallelism.pipeline_parallel_microbatch_size, 2);
  EXPECT_TRUE(
      good("--parallelism.enable_async_tensor_parallel").compile.enable_async_tensor_parallel);
  EXPECT_THAT(to_json(c), testing::Not(HasSubstr("num_tokens_per")));
}

TEST(CommandLine, OptionsWithoutEffectWarnOnce) {
  const CommandLine line = parse("--training.gc_freq 10 --training.no_gc_debug");
  EXPECT_TRUE(line.report.ok());
  ASSERT_EQ(line.report.warnings.size(), 2U);
  EXPECT_EQ(line.report.warnings[0],
            "training.gc_freq has no effect: there is no garbage collector");
  EXPECT_THAT(line.report.warnings[1], HasSubstr("training.gc_debug has no effect"));
}

TEST(CommandLine, OverrideImports) {
  const std::vector<std::string> args = {
      "--module",           "llama3", "--config", "llama3_8b",
      "--override.imports", "a.cpp",  "b:c",      R"(d={"x": 1, "y": [2, "},"]},e)",
      "--training.steps",   "2"};
  const CommandLine line = parse_command_line(args, test_registry());
  EXPECT_TRUE(line.report.ok()) << line.report.text();
  EXPECT_THAT(line.config.override.imports,
              ElementsAre("a.cpp", "b:c", R"(d={"x": 1, "y": [2, "},"]})", "e"));
  EXPECT_EQ(line.config.training.steps, 2);
}

TEST(CommandLine, EveryOptionRoundTripsThroughItsText) {
  // The text that help shows for a value, given as an option, must make the same tree.
  TrainerConfig config = test_recipe();
  config.debug.seed = 3;
  config.training.max_norm = 0.1;
  config.checkpoint->exclude_from_loading = {"optimizer", "lr_scheduler"};
  config.optimizer->param_groups.push_back(ParamGroup{});
  canonicalize(config);
  std::vector<std::string> args;
  const OptionIndex index(config);
  for (const Option& option : index.options()) {
    const auto* leaf = std::get_if<LeafOption>(&option.kind);
    if (!leaf) continue;
    const std::string value = leaf_text(leaf->place);
    if (!is_flag(leaf->place))
      args.push_back("--" + option.path + "=" + value);
    else if (value == "None")
      args.push_back("--" + option.path + "=None");
    else if (value == "true")
      args.push_back("--" + option.path);
    else
      args.push_back("--" + option.path.substr(0, option.path.rfind('.') + 1) + "no_" +
                     option.path.substr(option.path.rfind('.') + 1));
  }
  EXPECT_GT(args.size(), 130U);
  TrainerConfig other;
  other.model_spec = config.model_spec;
  Report report;
  apply_options(args, other, report);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(to_json(other), to_json(config));
}

TEST(CommandLine, RandomWordsNeverCrash) {
  TrainerConfig config;
  const OptionIndex index(config);
  std::vector<std::string> pool = {"--",
                                   "-",
                                   "=",
                                   "--=",
                                   ":",
                                   "a:",
                                   ":b",
                                   "x:y",
                                   "--a.b.c",
                                   "None",
                                   "true",
                                   "-1",
                                   "1e9",
                                   "9223372036854775807",
                                   "--optimizer.param_groups.1.pattern",
                                   "loss:CrossEntropyLoss",
                                   "--dataloader.sources.0.weight",
                                   "--dataloader.sources.",
                                   "--override.imports",
                                   "{",
                                   "}",
                                   "\"",
                                   "a,b",
                                   ",",
                                   ";",
                                   "\xff",
                                   "--help",
                                   "--module",
                                   "--config",
                                   "llama3"};
  for (const Option& option : index.options()) {
    pool.push_back("--" + option.path);
    pool.push_back("--" + option.path + "=");
    pool.push_back("--no_" + option.path);
    pool.push_back(option.path + ":x");
  }
  std::mt19937 random(1);
  const ConfigRegistry registry = test_registry();
  for (int round = 0; round < 1000; ++round) {
    std::vector<std::string> args;
    for (size_t n = random() % 12; n > 0; --n) {
      std::string word = pool[random() % pool.size()];
      if (random() % 4 == 0 && !word.empty())
        word[random() % word.size()] = static_cast<char>(random() % 256);
      if (random() % 8 == 0) word += pool[random() % pool.size()];
      args.push_back(word);
    }
    const CommandLine line = parse_command_line(args, registry);
    validate(line.config, {});
    to_json(line.config);
    line.report.text();
  }
}

TEST(Help, ListsEveryOptionWithTypeDefaultAndMeaning) {
  std::ostringstream out;
  print_options(test_recipe(), out);
  const std::string help = out.str();
  TrainerConfig config = test_recipe();
  const OptionIndex index(config);
  int64_t num_options = 0;
  for (const Option& option : index.options()) {
    if (!std::holds_alternative<LeafOption>(option.kind) ||
        option.path.starts_with("optimizer.param_groups"))
      continue;
    EXPECT_THAT(help, HasSubstr("--" + option.path + " "));
    EXPECT_FALSE(option.info.meaning.empty()) << option.path;
    ++num_options;
  }
  EXPECT_GT(num_options, 120);
  EXPECT_THAT(help, HasSubstr("--dataloader.sources.N.weight"));
  EXPECT_THAT(help, HasSubstr("--optimizer.param_groups.0.optimizer_kwargs.lr"));
  EXPECT_THAT(help, testing::ContainsRegex("--training.steps +int +10 +optimizer steps in all"));
  EXPECT_THAT(help, testing::ContainsRegex("--training.gc_freq +int +50 +no effect"));
  EXPECT_THAT(help, HasSubstr("loss:CrossEntropyLoss"));
  EXPECT_THAT(help, testing::Not(HasSubstr("--model_spec")));
}

TEST(Help, DocumentIsCurrent) {
  std::ostringstream out;
  out << "# Options of a run\n\nWhat `rhea train --help` prints, with the defaults of an empty "
         "config function; a test "
         "keeps this page equal to the code.\n\n```\n";
  print_options(TrainerConfig{}, out);
  out << "```\n";
  const std::string path = std::string(RHEA_SOURCE_DIR) + "/docs/options.md";
  if (std::getenv("RHEA_UPDATE_DOCS")) std::ofstream(path) << out.str();
  std::ifstream file(path);
  std::ostringstream found;
  found << file.rdbuf();
  EXPECT_TRUE(found.str() == out.str())
      << path << " is out of date: run this test with RHEA_UPDATE_DOCS=1";
}

TEST(Load, ChecksLineModelAndValuesTogether) {
  const auto fails = [](TrainerConfig&) -> std::optional<ModelFacts> {
    throw Error("config.json has no field x");
  };
  const auto args =
      words("--module llama3 --config llama3_8b --training.stpes 1 --training.steps 0");
  try {
    load_or_throw(args, test_registry(), {}, fails);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "The configuration has 3 problems:\n  unknown option --training.stpes; did you mean "
        "--training.steps?\n"
        "  training.steps = 0: must be between 1 and 1000000000000000\n  model_spec: config.json "
        "has no field x");
  }
  // Without a config function the values of the default tree are nobody's mistake.
  const Report report = load(words("--validator.enable"), test_registry(), {}, nullptr).report;
  EXPECT_EQ(report.problems.size(), 2U) << report.text();
}

TEST(PrintConfig, JsonOnOneStreamNotesOnTheOther) {
  const auto complete = [](TrainerConfig& c) -> std::optional<ModelFacts> {
    c.model_spec.flavor = "completed";
    return std::nullopt;
  };
  std::ostringstream out, notes;
  print_config(words("--module llama3 --config llama3_8b --parallelism.tensor_parallel_degree 8"),
               test_registry(), complete, out, notes);
  EXPECT_THAT(out.str(), HasSubstr("\"tensor_parallel_degree\": 8"));
  EXPECT_THAT(out.str(), HasSubstr("\"flavor\": \"completed\""));
  EXPECT_THAT(notes.str(), HasSubstr("Invalid parallel dims"));
  std::ostringstream list;
  print_config(words("--list"), test_registry(), complete, list, notes);
  EXPECT_THAT(list.str(), HasSubstr("llama3_debugmodel  tiny model"));
  EXPECT_THROW(print_config(words("--list --module x"), test_registry(), complete, list, notes),
               Error);
  EXPECT_THROW(print_config(words("--module x --config y"), test_registry(), complete, list, notes),
               Error);
  std::ostringstream help;
  print_config(words("--help"), test_registry(), complete, help, notes);
  EXPECT_THAT(help.str(), HasSubstr("usage: rhea config"));
}

TEST(Help, NeedsNoModule) {
  const CommandLine line = parse_command_line(words("--help"), test_registry());
  EXPECT_TRUE(line.help);
  EXPECT_TRUE(line.report.ok());
  std::ostringstream out;
  print_modules(test_registry(), out);
  EXPECT_EQ(
      out.str(),
      "llama3\n  llama3_debugmodel  tiny model\n  llama3_8b          8 billion parameters\nqwen3\n"
      "  qwen3_broken       throws\n");
}

// A loss of a user's file.
struct HingeConfig : LossConfig {
  double margin = 1;
  void fields(Visitor& v) override { v("margin", margin, "distance that costs nothing"); }
};

TEST(Imports, WhatAFileRegistersIsKnownBeforeTheLineIsRead) {
  ConfigRegistry registry = test_registry();
  registry.set_import_loader([](const std::vector<std::string>& imports) {
    EXPECT_EQ(imports, (std::vector<std::string>{"my.cpp", "other.cpp:x"}));
    loss_words().add(loss_word<HingeConfig>("Hinged"), "my.cpp");
  });
  const CommandLine line = parse_command_line(
      words("--module llama3 --config llama3_debugmodel loss:Hinged --loss.margin 2 "
            "--override.imports my.cpp,other.cpp:x"),
      registry);
  EXPECT_TRUE(line.report.ok()) << line.report.text();
  ASSERT_NE(line.config.loss.as<HingeConfig>(), nullptr);
  EXPECT_EQ(line.config.loss.as<HingeConfig>()->margin, 2);
  EXPECT_EQ(line.config.override.imports.size(), 2U);
}

TEST(Imports, AFileThatCannotBeLoadedIsOneOfTheProblems) {
  ConfigRegistry registry = test_registry();
  registry.set_import_loader(
      [](const std::vector<std::string>&) { throw Error("broken.cpp has 3 errors"); });
  const CommandLine line = parse_command_line(
      words("--module llama3 --config llama3_debugmodel --override.imports broken.cpp "
            "--training.stpes 3"),
      registry);
  ASSERT_EQ(line.report.problems.size(), 2U) << line.report.text();
  EXPECT_EQ(to_string(line.report.problems[0]),
            "override.imports = broken.cpp: broken.cpp has 3 errors");
  EXPECT_TRUE(line.config.override.imports.empty()) << "nobody tries again";
}

}  // namespace
}  // namespace rhea::config
