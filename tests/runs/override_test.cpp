// Overrides in whole runs: the uses that the spec promises.
#include <fstream>

#include "rhea/base/log.h"
#include "rhea/cli/dispatch.h"
#include "rhea/config/derive.h"
#include "rhea/config/override_registry.h"
#include "rhea/models/registry.h"
#include "rhea/nn/attention.h"
#include "rhea/nn/moe.h"
#include "rhea/ops/ops.h"
#include "tests/runs/run_test.h"

namespace rhea {
namespace {

using nn::Trace;
using nn::Value;

// The stock rotation under another type.
struct MyRoPE {
  struct Config : nn::RopeFields {
    Value forward(Trace& trace, Value x_TNH) const override { return rotate(trace, x_TNH, false); }
  };
};
struct MyComplexRoPE {
  struct Config : nn::RopeFields {
    Value forward(Trace& trace, Value x_TNH) const override { return rotate(trace, x_TNH, true); }
  };
};
struct PickyRoPE {
  struct Config : MyComplexRoPE::Config {
    Value forward(Trace& trace, Value x_TNH) const override {
      nn::require_multiple("my_rope", "sequence length", trace.options().seq_len, 256);
      return MyComplexRoPE::Config::forward(trace, x_TNH);
    }
  };
};
// Gives half of the heads.
struct NarrowRoPE {
  struct Config : MyComplexRoPE::Config {
    Value forward(Trace& trace, Value x_TNH) const override {
      return ops::slice_dim(MyComplexRoPE::Config::forward(trace, x_TNH), 1, 0, 1);
    }
  };
};
// Rotates by a table that is a constant of the graph: no gradient reaches it.
struct FixedTableRoPE {
  struct Config : MyComplexRoPE::Config {
    Value forward(Trace& trace, Value x_TNH) const override {
      const auto tables = trace.rope_tables(spec());
      return ops::rope(x_TNH, ops::stop_gradient(tables.cos_SP), ops::stop_gradient(tables.sin_SP),
                       trace.positions(), true);
    }
  };
};
// Another name for the gate projection, and no up projection's weight of its own.
struct RenamingFeedForward {
  struct Config : nn::FeedForward::Config {
    Value forward(Trace& trace, Value x_TD) const override {
      const Value gate = call(trace, "gate", *w1, x_TD);
      return call(trace, names->w2, *w2, ops::swiglu(gate, gate));
    }
  };
};

// Other types with the stock computation.
struct MyAttention {
  struct Config : nn::Attention::Config {};
};
struct MyExperts {
  struct Config : nn::SplitExperts::Config {};
};

constexpr const char* kGptOss = R"({"architectures": ["GptOssForCausalLM"],
 "model_type": "gpt_oss", "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2,
 "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "num_local_experts": 4,
 "num_experts_per_tok": 2, "sliding_window": 16,
 "layer_types": ["sliding_attention", "full_attention"], "vocab_size": 2048,
 "hidden_act": "silu", "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "attention_bias": true,
 "max_position_embeddings": 4096, "tie_word_embeddings": false, "swiglu_limit": 7.0})";
constexpr const char* kQwen3Moe = R"({"architectures": ["Qwen3MoeForCausalLM"],
 "model_type": "qwen3_moe", "hidden_size": 32, "intermediate_size": 32,
 "moe_intermediate_size": 16, "num_hidden_layers": 6, "num_attention_heads": 4,
 "num_key_value_heads": 2, "head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2,
 "norm_topk_prob": true, "decoder_sparse_step": 1, "mlp_only_layers": [], "vocab_size": 2048,
 "hidden_act": "silu", "rms_norm_eps": 1e-06, "rope_theta": 10000.0,
 "max_position_embeddings": 4096, "tie_word_embeddings": false, "attention_bias": false})";

void register_overrides() {
  static const bool kOnce = [] {
    auto& r = config::override_registry();
    r.add<nn::CosSinRoPE::Config>(
        "my_rope", {}, [](const nn::RopeFields& stock) { return derive<MyRoPE::Config>(stock); },
        "test");
    r.add<nn::CosSinRoPE::Config>(
        "rope_of_tens", {.fqns = {"layers.1[0-9].attention.rope"}},
        [](const nn::RopeFields& stock) { return derive<MyRoPE::Config>(stock); }, "test");
    r.add<nn::RopeFields>(
        "my_complex_rope", {},
        [](const nn::RopeFields& stock) { return derive<MyComplexRoPE::Config>(stock); }, "test");
    r.add<nn::RopeFields>(
        "picky_rope", {},
        [](const nn::RopeFields& stock) { return derive<PickyRoPE::Config>(stock); }, "test");
    r.add<nn::RopeFields>(
        "narrow_rope", {},
        [](const nn::RopeFields& stock) { return derive<NarrowRoPE::Config>(stock); }, "test");
    r.add<nn::RopeFields>(
        "fixed_table_rope", {},
        [](const nn::RopeFields& stock) { return derive<FixedTableRoPE::Config>(stock); }, "test");
    r.add<nn::FeedForward::Config>(
        "renaming", {.fqns = {"layers.0.*"}},
        [](const nn::FeedForward::Config& stock) {
          return derive<RenamingFeedForward::Config>(stock);
        },
        "test");
    r.add<nn::Attention::Config>(
        "my_attention", {},
        [](const nn::Attention::Config& stock) { return derive<MyAttention::Config>(stock); },
        "test");
    for (const auto& [name, globs] :
         {std::pair<const char*, std::vector<std::string>>{"first_experts", {"layers.[0-3].*"}},
          {"last_experts", {"layers.5.mlp.routed_experts.inner_experts"}}})
      r.add<nn::Experts::Config>(
          name, {.fqns = globs},
          [](const nn::Experts::Config& stock) {
            return derive<MyExperts::Config>(dynamic_cast<const nn::SplitExperts::Config&>(stock));
          },
          "test");
    r.add<AdamW::Config>(
        "no_decay", {},
        [](AdamW::Config stock) {
          stock.param_groups[0].optimizer_kwargs.weight_decay = 0;
          return stock;
        },
        "test");
    r.add<ValidatorConfig>(
        "four_batches", {},
        [](ValidatorConfig stock) {
          stock.steps = 4;
          stock.dataloader->dataset = "Debug_Text_Validation";
          return stock;
        },
        "test");
    r.add<nn::Linear::Config>(
        "head", {.fqns = {"lm_head"}}, [](const nn::Linear::Config& stock) { return stock; },
        "test");
    return true;
  }();
  (void)kOnce;
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

class Overrides : public RunTest {
 protected:
  Overrides() { register_overrides(); }

  // What a command of this process prints, and its exit code.
  Outcome here(const Words& words) {
    log::set_level(log::Level::info);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = cli::guarded([&] { return cli::dispatch(words); });
    return {code, testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr()};
  }
  // A plan of the Transformers backend for another config.json.
  Outcome plan_of(const char* config_json, const Words& imports) {
    std::ofstream(temp_.path() / "config.json") << config_json;
    return here(
        support::join({"plan", "--module", "hf", "--config", "transformers_modeling_backend_full",
                       "--hf_assets_path=" + temp_.path().string(), "--training.seq_len=64",
                       "--override.imports"},
                      imports));
  }
  support::RunResult trained(const Words& more, const char* folder) {
    Words words = support::join(support::with_option(small_, "--training.steps=3"), more);
    words.erase(std::find(words.begin(), words.end(), "train"), words.end());
    return support::train(words, temp_.path() / folder);
  }
};

TEST_F(Overrides, OwnRoPEInEveryLayerOf4BIs36Lines) {
  const auto plan =
      here({"plan", "--module", "qwen3", "--config", "qwen3_4b", "--override.imports", "my_rope"});
  ASSERT_EQ(plan.code, 0) << plan.output;
  EXPECT_EQ(count(plan.output, "[Override] my_rope: model_spec.model.layers."), 36U);
  EXPECT_THAT(plan.output, HasSubstr("[Override] my_rope: model_spec.model.layers.35.attention."
                                     "rope CosSinRoPE.Config -> MyRoPE.Config\n"));
  EXPECT_THAT(plan.output, HasSubstr("Applied 36 override(s)"));
}

TEST_F(Overrides, GlobsBelowTheModelMeanLayers10To19) {
  const auto plan = here(
      {"plan", "--module", "qwen3", "--config", "qwen3_4b", "--override.imports", "rope_of_tens"});
  ASSERT_EQ(plan.code, 0) << plan.output;
  EXPECT_EQ(count(plan.output, "[Override] rope_of_tens: model_spec.model.layers.1"), 10U);
  EXPECT_THAT(plan.output, HasSubstr("Applied 10 override(s)"));
}

TEST_F(Overrides, ARotationOfTheSameBitsTrainsToTheSameBits) {
  const auto stock = trained({}, "stock");
  for (const char* name : {"my_complex_rope", "fixed_table_rope"}) {
    const auto mine = trained({"--override.imports", name}, name);
    EXPECT_EQ(mine.rows, stock.rows) << name;
    EXPECT_EQ(support::difference(mine.tensors, stock.tensors), "") << name;
  }
}

TEST_F(Overrides, AHeadFromOutsideMakesTheLogits) {
  const auto whole = trained({"loss:CrossEntropyLoss"}, "whole");
  const auto mine = trained({"--override.imports", "head"}, "head");
  EXPECT_EQ(mine.rows, whole.rows);
  EXPECT_EQ(support::difference(mine.tensors, whole.tensors), "");
}

TEST_F(Overrides, TheOptimizerIsOneNode) {
  const auto outcome = here(train_words({"--training.steps=1", "--override.imports", "no_decay"}));
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output,
              HasSubstr("[Override] no_decay: optimizer AdamW.Config -> AdamW.Config\n"));
  EXPECT_THAT(outcome.output, HasSubstr("weight_decay: 0"));
}

// As if its values had been given as options.
TEST_F(Overrides, WhatASectionSaysIsSpelledAsOptionsAre) {
  const auto outcome = here({"config", "--module", "qwen3", "--config", "qwen3_debugmodel",
                             "--override.imports", "four_batches"});
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const size_t validator = outcome.output.find("\"validator\": {");
  ASSERT_NE(validator, std::string::npos);
  const std::string loader = outcome.output.substr(validator, 400);
  EXPECT_THAT(loader, HasSubstr("\"steps\": 4"));
  EXPECT_THAT(loader, HasSubstr("\"dataset\": \"debug_text_validation\""));
  EXPECT_THAT(loader, HasSubstr("\"infinite\": true"));
}

TEST_F(Overrides, LimitsAreSeenAtTraceWithBothNumbers) {
  const auto outcome = here(train_words(
      {"--training.seq_len=200", "--checkpoint.enable", "--override.imports", "picky_rope"}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.output, HasSubstr("my_rope requires a sequence length that is a multiple of "
                                        "256, got 200"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("Planned peak memory")));
  EXPECT_FALSE(fs::exists(dump() / "checkpoint"));
}

TEST_F(Overrides, AReplacementKeepsTheShape) {
  const auto outcome = here(train_words({"--override.imports", "narrow_rope"}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.output,
              HasSubstr("Override 'narrow_rope' changes what "
                        "model_spec.model.layers.0.attention.rope gives: ComplexRoPE.Config gives "
                        "(f32[64,4,8]), the replacement gives (f32[64,1,8])"));
}

TEST_F(Overrides, ParametersThatGoOrComeAreNamed) {
  const auto outcome = here(train_words({"--training.steps=1", "--override.imports", "renaming"}));
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(count(outcome.output,
                  "Override 'renaming' leaves out parameters of "
                  "model_spec.model.layers.0.feed_forward: layers.0.feed_forward.w1.weight, "
                  "layers.0.feed_forward.w3.weight; checkpoints of this run do not hold them"),
            1U);
  EXPECT_THAT(outcome.output,
              HasSubstr("Override 'renaming' adds parameters to "
                        "model_spec.model.layers.0.feed_forward: "
                        "layers.0.feed_forward.gate.weight; checkpoints of other runs lack them"));
}

TEST_F(Overrides, WorkOnTheTransformersBackend) {
  const auto plan =
      here({"plan", "--module", "transformers_modeling_backend", "--config",
            "transformers_modeling_backend_full", "--hf_assets_path=" + temp_.path().string(),
            "--override.imports", "my_rope"});
  ASSERT_EQ(plan.code, 0) << plan.output;
  EXPECT_THAT(plan.output, HasSubstr("[Override] my_rope: model_spec.model.layers.1.self_attn.rope "
                                     "CosSinRoPE.Config -> MyRoPE.Config"));
}

TEST_F(Overrides, AttentionWithSinksAndAWindowLeavesTheExpertsAlone) {
  const auto plan = plan_of(kGptOss, {"my_attention"});
  ASSERT_EQ(plan.code, 0) << plan.output;
  EXPECT_THAT(plan.output, HasSubstr("[Override] my_attention: model_spec.model.layers.0.self_attn "
                                     "Attention.Config -> MyAttention.Config"));
  EXPECT_EQ(count(plan.output, "[Override]"), 2U);
  // Same parameters, sinks included.
  EXPECT_EQ(count(plan.output, "leaves out"), 0U);
  EXPECT_EQ(count(plan.output, "adds parameters"), 0U);
}

TEST_F(Overrides, ExpertsOfSomeLayersAndStockElsewhere) {
  const auto first = plan_of(kQwen3Moe, {"first_experts"});
  ASSERT_EQ(first.code, 0) << first.output;
  EXPECT_THAT(first.output, HasSubstr("Applied 4 override(s)"));
  const auto both = plan_of(kQwen3Moe, {"last_experts", "first_experts"});
  ASSERT_EQ(both.code, 0) << both.output;
  EXPECT_THAT(both.output,
              HasSubstr("[Override] last_experts: model_spec.model.layers.5.mlp."
                        "routed_experts.inner_experts SplitExperts.Config -> MyExperts.Config"));
  EXPECT_THAT(both.output, HasSubstr("Applied 5 override(s)"));
}

TEST_F(Overrides, AResumeWithoutThemWarns) {
  const Words saves = {"--checkpoint.enable", "--checkpoint.interval=2"};
  auto first = train_words(
      support::join(saves, {"--training.steps=2", "--override.imports", "my_complex_rope"}));
  ASSERT_EQ(here(first).code, 0);
  auto with = here(train_words(
      support::join(saves, {"--training.steps=4", "--override.imports", "my_complex_rope"})));
  ASSERT_EQ(with.code, 0) << with.output;
  EXPECT_THAT(with.output, Not(HasSubstr("was saved with override")));
  auto without = here(train_words(support::join(saves, {"--training.steps=6"})));
  ASSERT_EQ(without.code, 0) << without.output;
  EXPECT_THAT(
      without.output,
      HasSubstr("was saved with override(s) my_complex_rope, which this run does not have"));
}

TEST_F(Overrides, WhatCannotBeLoadedIsAnErrorOfTheRun) {
  const auto outcome = here(train_words({"--override.imports", "absent_kernels.cpp"}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.output,
              HasSubstr("Failed to import override target 'absent_kernels.cpp': module "
                        "'absent_kernels.cpp' could not be imported"));
}

}  // namespace
}  // namespace rhea
