// `rhea config` over every in-tree run.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "recipes/recipes.h"
#include "rhea/base/json.h"
#include "rhea/cli/dispatch.h"
#include "rhea/cli/run_config.h"
#include "rhea/complete_model.h"

namespace rhea::cli {
namespace {

std::string output_of(const std::vector<std::string>& words) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = guarded([&] { return dispatch(words); });
  const std::string out = testing::internal::GetCapturedStdout();
  const std::string err = testing::internal::GetCapturedStderr();
  EXPECT_EQ(code, 0) << err;
  return out;
}

TEST(ConfigCommand, PrintsEveryInTreeRun) {
  const config::ConfigRegistry registry = recipes::builtin_registry();
  int64_t num_runs = 0;
  for (const std::string& module : registry.modules())
    for (const config::ConfigEntry& entry : registry.functions(module)) {
      const auto json =
          parse_json(output_of({"config", "--module", module, "--config", entry.name}));
      EXPECT_FALSE(json["model_spec"]["name"].get<std::string>().empty()) << entry.name;
      ++num_runs;
    }
  EXPECT_GT(num_runs, 8);
}

TEST(ConfigCommand, SizesOfTheModelAreInTheTree) {
  const auto json = parse_json(output_of(
      {"config", "--module", "llama3", "--config", "llama3_8b", "--training.seq_len", "1_024"}));
  EXPECT_EQ(json["model_spec"]["flavor"], "8B");
  EXPECT_EQ(json["model_spec"]["model"]["layers"].size(), 32U);
  EXPECT_EQ(json["model_spec"]["model"]["layers"][31]["attention"]["qkv_linear"]["n_kv_heads"], 8);
  EXPECT_EQ(json["training"]["seq_len"], 1024);
}

TEST(ConfigCommand, ListsModulesAndFunctions) {
  const std::string list = output_of({"config", "--list"});
  EXPECT_THAT(list, testing::HasSubstr("llama3\n"));
  EXPECT_THAT(list, testing::HasSubstr("llama3_debugmodel"));
  EXPECT_THAT(list, testing::HasSubstr("qwen3_debugmodel"));
}

TEST(RunConfig, KnowsTheHeadsOfTheModel) {
  const std::vector<std::string> args = {"--module", "llama3", "--config", "llama3_8b"};
  TrainerConfig c = recipes::builtin_registry().find("llama3", "llama3_8b").make();
  EXPECT_EQ(complete_model(c)->n_heads, 32);
  EXPECT_EQ(complete_model(c)->n_kv_heads, 8);
  EXPECT_EQ(complete_model(c)->ffn_hidden_dim, 14336);
  try {
    run_config(std::vector<std::string>{"--module", "llama3", "--config", "llama3_8b",
                                        "--dataloader.dataset=debug_text",
                                        "--parallelism.tensor_parallel_degree=3"},
               3);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("n_kv_heads (8) must be divisible by "
                                                 "tensor_parallel_degree (3)"));
  }
}

TEST(PlanConfig, EveryFlavorCanBePlannedAnywhere) {
  const config::ConfigRegistry registry = recipes::builtin_registry();
  for (const std::string& module : registry.modules())
    for (const config::ConfigEntry& entry : registry.functions(module)) {
      if (entry.make().model_spec.flavor == "from_config") continue;  // needs a folder
      const TrainerConfig c =
          plan_config(std::vector<std::string>{"--module", module, "--config", entry.name});
      EXPECT_EQ(c.parallelism.tensor_parallel_degree, 1) << entry.name;
    }
}

// Rows that nobody asks for are as long as the model allows; others are refused, with what allows
// no more.
TEST(PlanConfig, RowsAreAsLongAsTheModelAllows) {
  const std::pair<const char*, const char*> kModels[] = {
      {"gpt2", "learned position embedding"}, {"mpt", "ALiBi"}, {"llama", "attention RoPE"}};
  for (const auto& [name, reason] : kModels) {
    const std::vector<std::string> words = {
        "--module", "transformers_modeling_backend", "--config",
        "transformers_modeling_backend_full",
        fmt::format("--hf_model={}/tests/data/golden/models/{}", RHEA_SOURCE_DIR, name)};
    const int64_t limit = plan_config(words).training.seq_len;
    EXPECT_LT(limit, 2048) << name;
    auto longer = words;
    longer.push_back(fmt::format("--training.seq_len={}", limit + 1));
    try {
      plan_config(longer);
      ADD_FAILURE() << name << " was accepted";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(fmt::format(
                                    "{} exceeds {} maximum supported sequence length {}", limit + 1,
                                    reason, limit)));
    }
  }
}

TEST(RunConfig, EveryRunThatFitsOneRankIsAccepted) {
  for (const auto& [module, function] :
       {std::pair{"llama3", "llama3_debugmodel"}, std::pair{"qwen3", "qwen3_debugmodel"},
        std::pair{"bench", "model_a"}, std::pair{"bench", "smollm2_135m"},
        std::pair{"bench", "qwen3_0_6b"}, std::pair{"bench", "debugmodel"}})
    EXPECT_NO_THROW(
        run_config(std::vector<std::string>{"--module", module, "--config", function}, 1));
}

}  // namespace
}  // namespace rhea::cli
