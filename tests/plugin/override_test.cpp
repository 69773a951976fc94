// Overrides from files of a user, and the examples in overrides/.
#include <map>

#include "tests/plugin/plugin_test.h"
#include "tests/support/run.h"

namespace rhea {
namespace {

using support::Words;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kKernels = R"(#include "rhea/models/llama3/llama3.h"
#include "rhea/nn/attention.h"
#include "rhea/plugin/plugin.h"

using rhea::nn::RopeFields;
struct MyRoPE {
  struct Config : RopeFields {
    int64_t block = 64;
    rhea::nn::Value forward(rhea::nn::Trace& trace, rhea::nn::Value x) const override {
      rhea::nn::require_multiple("my_rope", "sequence length", trace.options().seq_len, block);
      return rotate(trace, x, true);
    }
    void fields(rhea::Visitor& v) override {
      RopeFields::fields(v);
      v("block", block, "positions of a block");
    }
  };
};
struct Arguments : rhea::Config {
  int64_t block = 64;
  void fields(rhea::Visitor& v) override { v("block", block, "positions", rhea::at_least(1)); }
};
struct MyNorm {
  struct Config : rhea::nn::RMSNorm::Config {};
};

RHEA_PLUGIN(p) {
  p.override<rhea::nn::ComplexRoPE::Config>(
      "my_rope", {.exact = true}, [](const RopeFields& stock, const Arguments& arguments) {
        return rhea::derive<MyRoPE::Config>(stock, {{"block", arguments.block}});
      });
  p.override<rhea::nn::RMSNorm::Config>(
      "my_norm", {.fqns = {"norm"}},
      [](const rhea::nn::RMSNorm::Config& stock) { return rhea::derive<MyNorm::Config>(stock); });
}
)";

class OverrideFiles : public PluginTest {
 protected:
  void SetUp() override {
    write("my_kernels.cpp", kKernels);
    small_ = support::small_run(folder());
  }
  Ended train(const std::string& dump, const Words& more) const {
    Words words = support::join({"train", "--dump_folder=" + (folder() / dump).string()},
                                support::with_option(small_, "--training.steps=2"));
    return rhea(support::join(words, more));
  }
  // Names and bits of the seed checkpoint, which holds the initial weights.
  std::map<std::string, std::vector<std::byte>> seed(const std::string& dump, const Words& base,
                                                     const Words& more) const {
    Words words = support::join({"train", "--dump_folder=" + (folder() / dump).string()}, base);
    words = support::join(words, {"--checkpoint.enable", "--checkpoint.create_seed_checkpoint"});
    const Ended ended = rhea(support::join(words, more));
    EXPECT_EQ(ended.code, 0) << ended.output;
    return support::read_step(folder() / dump / "checkpoint/step-0");
  }
  // The small run of another module.
  Words of_module(const std::string& module, const std::string& config) const {
    Words words;
    for (const std::string& word : small_)
      if (!word.starts_with("--module") && !word.starts_with("--config")) words.push_back(word);
    return support::join(words, {"--module=" + module, "--config=" + config});
  }
  // The small run with another config.json.
  Words published(const std::string& config_json) const {
    write("config.json", config_json);
    return of_module("hf", "transformers_modeling_backend_full");
  }
  std::vector<support::StepRow> steps(const std::string& dump, const Words& base,
                                      const Words& more) const {
    Words words = support::join({"train", "--dump_folder=" + (folder() / dump).string()},
                                support::with_option(base, "--training.steps=2"));
    const Ended ended = rhea(support::join(words, more));
    EXPECT_EQ(ended.code, 0) << ended.output;
    return support::read_rows(folder() / dump);
  }
  // A model with the override begins with the stock bits, trains to the stock numbers (the same
  // sums in another order), and what it saves goes on without it.
  void expect_stock(const Words& run, const Words& fused) const {
    EXPECT_EQ(support::difference(seed("fused", run, fused), seed("stock", run, {})), "");
    const Words saves = {"--checkpoint.enable", "--checkpoint.interval=2",
                         "--checkpoint.no_last_save_model_only"};
    const auto mine = steps("fused_run", run, support::join(saves, fused));
    const auto stock = steps("stock_run", run, {});
    ASSERT_EQ(mine.size(), 2U);
    for (size_t i = 0; i < mine.size(); ++i) {
      EXPECT_NEAR(mine[i].loss, stock[i].loss, 1e-5);
      EXPECT_NEAR(mine[i].grad_norm, stock[i].grad_norm, 1e-4);
    }
    Words words = support::join({"train", "--dump_folder=" + (folder() / "fused_run").string()},
                                support::with_option(run, "--training.steps=3"));
    const Ended second = rhea(support::join(words, saves));
    EXPECT_EQ(second.code, 0) << second.output;
    EXPECT_THAT(second.output, AllOf(HasSubstr("which this run does not have"),
                                     HasSubstr("Training starts at step 3")));
  }

  Words small_;
};

TEST_F(OverrideFiles, AFileMeansAllOfItANameOnlyThat) {
  const Ended all = train("all", {"--override.imports", "my_kernels.cpp"});
  ASSERT_EQ(all.code, 0) << all.output;
  EXPECT_THAT(all.output,
              AllOf(HasSubstr("[Override] my_rope: model_spec.model.layers.0.attention.rope "
                              "ComplexRoPE.Config -> MyRoPE.Config\n"),
                    HasSubstr("[Override] my_norm: model_spec.model.norm RMSNorm.Config -> "
                              "MyNorm.Config\n"),
                    HasSubstr("Applied 3 override(s)")));
  const Ended one = train("one", {"--override.imports", R"(my_kernels:my_rope={"block": 32})"});
  ASSERT_EQ(one.code, 0) << one.output;
  EXPECT_THAT(one.output, AllOf(HasSubstr("-> MyRoPE.Config with block=32\n"),
                                HasSubstr("Applied 2 override(s)"), Not(HasSubstr("my_norm"))));
  const Ended stock = train("stock", {});
  EXPECT_EQ(support::read_rows(folder() / "all"), support::read_rows(folder() / "stock"));
  EXPECT_EQ(support::read_rows(folder() / "one"), support::read_rows(folder() / "stock"));
}

// A step runs long after the plugin was loaded, on threads of the pool.
TEST_F(OverrideFiles, AnExceptionOfAKernelNamesFileAndLine) {
  write("throws.cpp", R"(#include "rhea/plugin/plugin.h"
RHEA_PLUGIN(p) {
  p.cpu_kernel("rope", {.name = "throws",
                        .items = [](const rhea::ir::OpInstance& op) { return op.in[0].shape[0]; },
                        .run = [](const rhea::ir::KernelArgs&, const rhea::ir::OpInstance&) {
                          throw rhea::Error("no number fits");  // line 6
                        }});
}
)");
  const Ended ended = train("throws", {"--override.imports", "throws.cpp"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr("rhea: error: no number fits"), HasSubstr("throws.cpp:6")));
}

TEST_F(OverrideFiles, OneFileMayHoldRunsAndOverrides) {
  write("both.cpp", std::string(kKernels) + R"(
rhea::TrainerConfig small() {
  rhea::TrainerConfig c;
  c.model_spec = rhea::models::llama3::model_registry("debugmodel");
  c.override.imports = {{"both.cpp:my_rope", {{"block", 16}}}};
  return c;
}
rhea::TrainerConfig by_name() {
  rhea::TrainerConfig c = small();
  c.override.imports = {"my_norm"};
  return c;
}
RHEA_CONFIG(small)
RHEA_CONFIG(by_name)
)");
  const auto plan = [&](const char* run) {
    return rhea({"plan", "--module", "both.cpp", "--config", run, "--training.seq_len=64"}).output;
  };
  EXPECT_THAT(plan("small"), AllOf(HasSubstr("-> MyRoPE.Config with block=16\n"),
                                   HasSubstr("Applied 6 override(s)")));
  EXPECT_THAT(plan("by_name"),
              AllOf(HasSubstr("-> MyNorm.Config\n"), HasSubstr("Applied 1 override(s)")));
}

TEST_F(OverrideFiles, WhatIsWrongIsNamed) {
  EXPECT_THAT(train("a", {"--override.imports", "my_kernels:rope"}).output,
              AllOf(HasSubstr("override.imports target 'my_kernels:rope' names no registered "
                              "override."),
                    HasSubstr("my_kernels.cpp has: my_rope, my_norm")));
  EXPECT_THAT(train("b", {"--override.imports", R"(my_kernels.my_rope={"blok": 1})"}).output,
              HasSubstr("'my_rope': unknown argument 'blok'; accepted: block: int"));
  EXPECT_THAT(train("c", {"--override.imports", R"(my_kernels.my_rope={"block": 48})"}).output,
              HasSubstr("my_rope requires a sequence length that is a multiple of 48, got 64"));
  write("broken.cpp", "#include \"rhea/plugin/plugin.h\"\nRHEA_PLUGIN(p) { p.no_such(); }\n");
  const Ended broken = train("d", {"--override.imports", "broken.cpp"});
  EXPECT_EQ(broken.code, 2);
  EXPECT_THAT(broken.output, AllOf(HasSubstr("Failed to import override target 'broken.cpp': "
                                             "module 'broken.cpp' could not be imported: "),
                                   HasSubstr("no_such")));
}

TEST_F(OverrideFiles, FusedSwiGLUHasTheStockKeysAndBits) {
  const Words fused = {"--override.imports", "fused_swiglu.fused_swiglu"};
  EXPECT_EQ(support::difference(seed("fused", small_, fused), seed("stock", small_, {})), "");
  // Saved with it, loaded without it.
  const Words saves = {"--checkpoint.enable", "--checkpoint.interval=2"};
  const Ended first = train("resumed", support::join(saves, fused));
  ASSERT_EQ(first.code, 0) << first.output;
  EXPECT_THAT(first.output, HasSubstr("Applied 2 override(s)"));
  Words words = support::join({"train", "--dump_folder=" + (folder() / "resumed").string()},
                              support::with_option(small_, "--training.steps=3"));
  const Ended second = rhea(support::join(words, saves));
  ASSERT_EQ(second.code, 0) << second.output;
  EXPECT_THAT(second.output, HasSubstr("was saved with override(s) fused_swiglu.fused_swiglu, "
                                       "which this run does not have"));
  EXPECT_THAT(second.output, HasSubstr("Training starts at step 3"));
}

TEST_F(OverrideFiles, FusedExpertsAndLatentAttentionHaveTheStockKeysAndBits) {
  const Words run = published(R"({"architectures": ["DeepseekV3ForCausalLM"],
 "model_type": "deepseek_v3", "hidden_size": 32, "intermediate_size": 64,
 "moe_intermediate_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
 "num_key_value_heads": 4, "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2,
 "n_group": 1, "topk_group": 1, "norm_topk_prob": true, "first_k_dense_replace": 1,
 "moe_layer_freq": 1, "routed_scaling_factor": 1.0, "scoring_func": "sigmoid",
 "topk_method": "noaux_tc", "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 8,
 "qk_rope_head_dim": 8, "v_head_dim": 16, "vocab_size": 2048, "hidden_act": "silu",
 "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "max_position_embeddings": 4096,
 "tie_word_embeddings": false, "attention_bias": false, "num_nextn_predict_layers": 0})");
  expect_stock(run, {"--override.imports", "fused_mla", "fused_swiglu.fused_grouped_experts"});
}

constexpr const char* kMixture = R"({"architectures": ["Qwen3MoeForCausalLM"],
 "model_type": "qwen3_moe", "hidden_size": 32, "intermediate_size": 48,
 "moe_intermediate_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4,
 "num_key_value_heads": 2, "head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2,
 "norm_topk_prob": true, "decoder_sparse_step": 1, "mlp_only_layers": [], "vocab_size": 2048,
 "hidden_act": "silu", "rms_norm_eps": 1e-06, "rope_theta": 10000.0,
 "max_position_embeddings": 4096, "tie_word_embeddings": false, "attention_bias": false})";

// One tensor for all experts in checkpoints.
TEST_F(OverrideFiles, FusedExpertsOfANativeModelHaveTheStockKeysAndBits) {
  write("config.json", kMixture);
  const Words run = of_module("qwen3", "qwen3_from_config");
  const Words fused = {"--override.imports", "fused_swiglu.fused_grouped_experts"};
  const Ended plan = rhea(support::join(support::join({"plan"}, run), fused));
  ASSERT_EQ(plan.code, 0) << plan.output;
  EXPECT_THAT(plan.output, AllOf(HasSubstr("SplitExperts.Config -> FusedGroupedExperts.Config"),
                                 HasSubstr("Applied 3 override(s)"), Not(HasSubstr("leaves out")),
                                 Not(HasSubstr("adds parameters"))));
  expect_stock(run, fused);
}

// A tensor for each expert in checkpoints, and a layer without experts.
TEST_F(OverrideFiles, FusedPartsOfAPublishedModelHaveTheStockKeysAndBits) {
  std::string config = kMixture;
  config.replace(config.find("layers\": []"), 11, "layers\": [1]");
  const Words run = published(config);
  const Words fused = {"--override.imports", "fused_swiglu"};
  const Ended plan = rhea(support::join(support::join({"plan"}, run), fused));
  EXPECT_THAT(plan.output, AllOf(HasSubstr("[Override] fused_swiglu.fused_swiglu: "
                                           "model_spec.model.layers.1.mlp "),
                                 HasSubstr("[Override] fused_swiglu.fused_grouped_experts: "
                                           "model_spec.model.layers.0.mlp."),
                                 HasSubstr("Applied 3 override(s)")));
  expect_stock(run, fused);
}

}  // namespace
}  // namespace rhea
