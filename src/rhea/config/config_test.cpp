// Slots, traversal, JSON, defaults, rules and registry.
#include "rhea/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/config/duration.h"
#include "rhea/config/json.h"
#include "rhea/config/pattern.h"
#include "rhea/config/test_recipe.h"
#include "rhea/config/traverse.h"

namespace rhea {

struct Rope {
  struct Config : rhea::Config {
    double theta = 1e4;
    void fields(Visitor& v) override {
      v("theta", theta, "base of the frequencies", greater_than{0});
    }
  };
};
struct MyRope {
  struct Config : Rope::Config {
    int64_t block = 64;
    void fields(Visitor& v) override {
      Rope::Config::fields(v);
      v("block", block, "positions per block");
    }
  };
};
struct BlockConfig : Config {
  Slot<Rope::Config> rope;
  void fields(Visitor& v) override { v("rope", rope, "positions"); }
};
struct ModelConfig : Config {
  std::vector<Slot<BlockConfig>> layers = {BlockConfig{}, BlockConfig{}, BlockConfig{}};
  void fields(Visitor& v) override { v("layers", layers, "blocks"); }
};

namespace config {
namespace {

using testing::ElementsAre;

TEST(Slot, CopiesDeeplyAndKeepsTheDerivedType) {
  MyRope::Config mine;
  mine.block = 7;
  Slot<Rope::Config> a = mine;
  Slot<Rope::Config> b = a;
  b->theta = 5;
  EXPECT_EQ(a->theta, 1e4);
  ASSERT_NE(b.as<MyRope::Config>(), nullptr);
  EXPECT_EQ(b.as<MyRope::Config>()->block, 7);
  EXPECT_EQ(Slot<Rope::Config>().as<MyRope::Config>(), nullptr);
  EXPECT_FALSE(Slot<LossConfig>());
}

TEST(Slot, RefusesAnotherType) {
  Slot<Rope::Config> slot;
  slot->theta = 3;
  SlotBase& base = slot;
  try {
    base.replace(Slot<LossConfig>(CrossEntropyLossConfig{}));
    FAIL() << "a loss went into the slot of a rope";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(
                                  "cannot fill a slot of Rope.Config with CrossEntropyLossConfig"));
  }
  EXPECT_EQ(slot->theta, 3);
  base.replace(Slot<Rope::Config>(MyRope::Config{}));
  EXPECT_EQ(type_name(*slot), "MyRope.Config");
}

TEST(Traverse, VisitsPathsInOrderAndMayReplace) {
  TrainerConfig c = test_recipe();
  c.model_spec.model = ModelConfig{};
  std::vector<std::string> paths;
  traverse(c, [&](const Node& node) {
    if (node.path.starts_with("model_spec"))
      paths.push_back(node.path + " " + type_name(node.config));
    if (node.path == "model_spec.model.layers.1.rope") {
      node.slot->replace(Slot<Rope::Config>(MyRope::Config{}));
      return false;
    }
    return true;
  });
  EXPECT_THAT(paths, ElementsAre("model_spec ModelSpec", "model_spec.model ModelConfig",
                                 "model_spec.model.layers.0 BlockConfig",
                                 "model_spec.model.layers.0.rope Rope.Config",
                                 "model_spec.model.layers.1 BlockConfig",
                                 "model_spec.model.layers.1.rope Rope.Config",
                                 "model_spec.model.layers.2 BlockConfig",
                                 "model_spec.model.layers.2.rope Rope.Config"));
  const auto json = parse_json(to_json(c));
  EXPECT_EQ(json["model_spec"]["model"]["layers"][1]["rope"]["_type"], "MyRope.Config");
  EXPECT_EQ(json["model_spec"]["model"]["layers"][1]["rope"]["block"], 64);
  EXPECT_EQ(json["model_spec"]["model"]["layers"][2]["rope"]["_type"], "Rope.Config");
}

TEST(Json, HoldsEveryValueExactly) {
  TrainerConfig c = test_recipe();
  c.training.max_norm = 0.1;
  c.debug.seed = 9223372036854775807;
  c.dump_folder = "a \"b\"\\\n\x01\xff\xc3\xa9";
  c.parallelism.module_fqns_per_model_part = {{"a", "b"}, {}};
  for (const int indent : {-1, 0, 2}) {
    const std::string text = to_json(c, indent);
    const auto json = parse_json(text);
    EXPECT_EQ(json["training"]["max_norm"], 0.1);
    EXPECT_TRUE(json["training"]["max_norm"].is_number_float());
    EXPECT_EQ(json["debug"]["seed"], 9223372036854775807);
    EXPECT_EQ(json["lr_scheduler"]["total_steps"], nullptr);
    EXPECT_EQ(json["compile"]["enable"], true);
    EXPECT_EQ(json["dump_folder"], "a \"b\"\\\n\x01\xef\xbf\xbd\xc3\xa9");
    EXPECT_EQ(json["optimizer"]["param_groups"][0]["optimizer_kwargs"]["eps"], 1e-8);
    EXPECT_EQ(json["optimizer"]["param_groups"][0]["optimizer_kwargs"]["betas"],
              (std::vector{0.9, 0.95}));
    EXPECT_EQ(json["loss"]["_type"], "ChunkedLossConfig");
    EXPECT_EQ(json["loss"]["loss_fn"]["_type"], "CrossEntropyLossConfig");
    EXPECT_EQ(json["parallelism"]["module_fqns_per_model_part"][0][1], "b");
    EXPECT_EQ(text.find('\n') == std::string::npos, indent < 0);
  }
}

TEST(Json, SavesIntoANewFolder) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "rhea_config_test";
  std::filesystem::remove_all(folder);
  save_json(test_recipe(), (folder / "run/config.json").string());
  EXPECT_EQ(parse_json(read_file(folder / "run/config.json"))["training"]["steps"], 10);
  EXPECT_THROW(save_json(test_recipe(), (folder / "run/config.json/x").string()), Error);
  std::filesystem::remove_all(folder);
}

TEST(Defaults, AreThoseOfTheSpec) {
  const TrainerConfig c;
  EXPECT_EQ(c.training.local_batch_size, 8);
  EXPECT_EQ(c.training.steps, 10000);
  EXPECT_EQ(c.training.mixed_precision_param, "bfloat16");
  EXPECT_TRUE(c.compile.enable);
  EXPECT_EQ(c.checkpoint->keep_latest_k, 10);
  EXPECT_EQ(c.validator->dataloader->dataset, "c4_validation");
  EXPECT_FALSE(c.validator->dataloader->infinite);
  EXPECT_EQ(c.optimizer->param_groups[0].optimizer_kwargs.lr, 8e-4);
}

TEST(Validate, AcceptsTheRecipeAndWarnsAboutWhatDoesNothing) {
  TrainerConfig c = test_recipe();
  EXPECT_TRUE(validate(c, {}).ok()) << validate(c, {}).text();
  EXPECT_TRUE(validate(c, {}).warnings.empty());
  c.training.enable_cpu_offload = true;
  c.hf_model = "Qwen3-4B";
  c.hf_assets_path = "/nonexistent/assets";
  c.training.dtype = "bfloat16";
  c.debug.moe_force_load_balance = true;
  c.parallelism.expert_parallel_degree = 4;
  WorldFacts dense;
  dense.model = ModelFacts{};
  const Report report = validate(c, dense);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_THAT(report.warnings,
              testing::UnorderedElementsAre(
                  "HF assets path /nonexistent/assets does not exist!",
                  testing::HasSubstr("enable_cpu_offload"),
                  testing::HasSubstr("hf_model has no effect"), testing::HasSubstr("may vanish"),
                  testing::HasSubstr("moe_force_load_balance has no effect"),
                  testing::HasSubstr("expert_parallel_degree has no effect")));
}

TEST(Validate, CodeMistakesAreFoundToo) {
  TrainerConfig c = test_recipe();
  c.training.max_norm = std::numeric_limits<double>::quiet_NaN();
  c.training.local_batch_size = INT64_MAX;
  c.training.global_batch_size = 4;
  const std::string text = validate(c, {}).text();
  EXPECT_THAT(text, testing::HasSubstr("training.max_norm = nan: must be a finite number"));
  EXPECT_THAT(text, testing::HasSubstr("must be at most 2147483647 tokens"));
  BlockConfig block;
  block.rope->theta = -1;
  ModelConfig model;
  model.layers = {block};
  c = test_recipe();
  c.model_spec.model = model;
  c.loss = Slot<LossConfig>();
  EXPECT_EQ(validate(c, {}).text(),
            "The configuration has 2 problems:\n"
            "  model_spec.model.layers.0.rope.theta = -1: must be greater than 0\n"
            "  loss: is empty: the config function must fill it");
}

TEST(Batch, AccumulationFollowsFromTheBatchSizes) {
  TrainerConfig c = test_recipe();
  EXPECT_EQ(resolved_global_batch_size(c, 1), 8);
  EXPECT_EQ(accumulation_steps(c, 1), 1);
  c.training.global_batch_size = 32;
  EXPECT_EQ(accumulation_steps(c, 1), 4);
  EXPECT_EQ(accumulation_steps(c, 2), 2);
  c.parallelism.tensor_parallel_degree = 2;
  EXPECT_EQ(resolve_degrees(c.parallelism, 8).dp_shard, 4);
  EXPECT_EQ(accumulation_steps(c, 8), 1);
}

TEST(Duration, Forms) {
  EXPECT_EQ(parse_duration("3h30m"), 12600);
  EXPECT_EQ(parse_duration("900s"), 900);
  EXPECT_EQ(parse_duration("1d"), 86400);
  for (const char* bad : {"", "10", "h", "3x", "1m1h", "1h1h", "-3s", "0s", "3h ", "99999999999d"})
    EXPECT_THROW(parse_duration(bad), Error) << bad;
}

TEST(Pattern, FindsAsPythonDoes) {
  EXPECT_TRUE(Pattern("layers\\.0\\.").found_in("model.layers.0.wq"));
  EXPECT_FALSE(Pattern("^layers").found_in("model.layers.0.wq"));
  EXPECT_TRUE(Pattern("(?<!tok_)embeddings").found_in("embeddings.weight"));
  EXPECT_FALSE(Pattern("(?<!tok_)embeddings").found_in("tok_embeddings.weight"));
  EXPECT_TRUE(Pattern("").found_in(""));
  EXPECT_THROW(Pattern("a("), Error);
  // Exponential backtracking ends in an error, not in a run that never starts.
  EXPECT_THROW(Pattern("(a+)+$").found_in(std::string(60, 'a') + "b"), Error);
}

TEST(Registry, NamesAreUnique) {
  ConfigRegistry registry = test_registry();
  EXPECT_THROW(registry.add("llama3", "llama3_8b", test_recipe, ""), Error);
  EXPECT_THROW(registry.add_alias("llama", "qwen3"), Error);
  EXPECT_EQ(&registry.find("llama", "llama3_8b"), &registry.find("llama3", "llama3_8b"));
  EXPECT_THAT(registry.modules(), ElementsAre("llama3", "qwen3"));
}

}  // namespace
}  // namespace config
}  // namespace rhea
