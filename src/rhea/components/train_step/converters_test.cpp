// LoRA and float8 in native models: fused projections, the head, what is refused and what is said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rhea/base/error.h"
#include "rhea/components/train_step/test_training.h"
#include "rhea/models/converters/convert.h"
#include "rhea/models/converters/float8.h"
#include "rhea/models/converters/freeze.h"
#include "rhea/models/converters/lora.h"

namespace rhea::train_step {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ModelSpec small_spec(Converters converters, bool tied = false, bool fused = true) {
  ModelSpec spec;
  spec.name = "qwen3";
  spec.model = small_model(tied, fused);
  spec.converters = std::move(converters);
  models::apply_converters(spec);
  return spec;
}

Trained train(const ModelSpec& spec, DType compute = DType::f32, int64_t chunks = 4) {
  return train(*spec.model.as<nn::Decoder::Config>(), small_options(compute, chunks));
}

// Names of what has a gradient.
std::set<std::string> trained_names(const Trained& run) {
  std::set<std::string> names;
  for (const auto& [name, bytes] : run.gradients) names.insert(name.substr(5));
  return names;
}

LoRAConverter lora(std::vector<std::string> targets = {}) {
  return LoRAConverter({.rank = 4, .alpha = 8, .target_modules = std::move(targets)});
}

TEST(LoRA, NothingChangesBeforeTheFirstUpdateAndOnlyAdaptersAfter) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    for (const bool fused : {true, false}) {
      // Whole logits on both sides: with an adapter at the head the loss has no chunks.
      const Trained base = train(small_spec({}, false, fused), compute, 0);
      const Trained run = train(small_spec({lora()}, false, fused), compute, 0);
      EXPECT_EQ(run.losses[0], base.losses[0]) << dtype_name(compute) << fused;
      EXPECT_LT(run.losses[2], run.losses[0]);
      for (const auto& [name, values] : run.start) {
        const bool adapter = name.find(".lora_") != std::string::npos;
        EXPECT_EQ(trained_names(run).contains(name), adapter) << name;
        EXPECT_EQ(run.end.at(name) == values, !adapter) << name;
        if (!adapter) {
          EXPECT_EQ(values, base.start.at(name)) << name;
        }
      }
      EXPECT_EQ(run.gradients.size(), 2U * (2 * 7 + 1));
    }
  }
}

TEST(LoRA, AStartsUniformAndBAtZero) {
  const Trained run = train(small_spec({lora({"w2"})}));
  const auto a = as_floats(run.start.at("layers.1.feed_forward.w2.lora_a.weight"));
  const auto b = as_floats(run.start.at("layers.1.feed_forward.w2.lora_b.weight"));
  ASSERT_EQ(a.size(), 4U * 48);
  ASSERT_EQ(b.size(), 32U * 4);
  const double bound = 1 / std::sqrt(48.0);
  double largest = 0;
  for (const float value : a) largest = std::max(largest, std::abs(static_cast<double>(value)));
  EXPECT_LE(largest, bound);
  EXPECT_GT(largest, 0.95 * bound);
  for (const float value : b) EXPECT_EQ(value, 0);
}

TEST(LoRA, FusedAndSeparateProjectionsTrainAlike) {
  const Trained fused = train(small_spec({lora({"wq", "wv"})}, true, true));
  const Trained separate = train(small_spec({lora({"wq", "wv"})}, true, false));
  EXPECT_EQ(trained_names(fused), trained_names(separate));
  for (size_t i = 0; i < fused.losses.size(); ++i)
    EXPECT_NEAR(fused.losses[i], separate.losses[i], 1e-6);
  for (const auto& name : trained_names(fused)) {
    const auto a = as_floats(fused.end.at(name)), b = as_floats(separate.end.at(name));
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-4) << name << " " << i;
  }
}

TEST(LoRA, SaysWhatItDid) {
  const auto texts = [](const ModelSpec& spec) {
    std::vector<std::string> lines;
    for (const auto& note : spec.conversion_notes)
      lines.push_back((note.is_warning ? "WARNING " : "") + note.text);
    return lines;
  };
  EXPECT_THAT(texts(small_spec({LoRAConverter()}, true)),
              ElementsAre("LoRA training active with rank=8, alpha=16.0 (all Linear layers)",
                          "LoRAConverter: 14 of 15 linear layers have an adapter; skipped: lm_head "
                          "(its weight is the embedding's)"));
  EXPECT_THAT(
      texts(small_spec({lora({"wq", "no_such", "layers.1.feed_forward.*"})})),
      ElementsAre("WARNING LoRA target_modules ['no_such'] did not match any Linear.Config in the "
                  "model config tree.",
                  "LoRA training active with rank=4, alpha=8.0, target_modules=['wq', 'no_such', "
                  "'layers.1.feed_forward.*']",
                  HasSubstr("LoRAConverter: 5 of 15 linear layers have an adapter; skipped: "
                            "layers.0.attention.qkv_linear.wk (not in target_modules), ")));
}

TEST(LoRA, WhatItRefuses) {
  const auto error = [](LoRAOptions options) {
    try {
      small_spec({LoRAConverter(std::move(options))}, true);
    } catch (const Error& thrown) {
      return std::string(thrown.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error({.rank = 0}), "LoRA rank must be positive, got 0");
  EXPECT_EQ(error({.rank = -3}), "LoRA rank must be positive, got -3");
  for (const auto& [alpha, text] :
       {std::pair(0.0, "0.0"), {-1.0, "-1.0"}, {std::nan(""), "nan"}, {HUGE_VAL, "inf"}})
    EXPECT_EQ(error({.alpha = alpha}),
              std::string("LoRA alpha must be positive and finite, got ") + text);
  for (const double alpha : {1e40, 1e-40})
    EXPECT_THAT(error({.alpha = alpha}), HasSubstr("is outside of what float32 holds")) << alpha;
  // Nothing of that size is ever asked for.
  for (const int64_t rank : {int64_t{97}, int64_t{100000}, int64_t{1} << 60})
    EXPECT_EQ(error({.rank = rank, .target_modules = {"lm_head", "wv"}}),
              fmt::format("LoRA rank {} is above both sizes of "
                          "layers.0.attention.qkv_linear.wv (32 x 32), so that its adapter would "
                          "be larger than the layer; choose a rank of at most 32, or name other "
                          "target_modules",
                          rank));
  EXPECT_THAT(error({.dropout = std::nan("")}), HasSubstr("LoRA dropout must be 0, got nan"));
  EXPECT_THAT(error({.dropout = 0.1}), HasSubstr("LoRA dropout must be 0, got 0.1"));
  EXPECT_EQ(error({.target_modules = {"q", "x"}}),
            "LoRA target_modules ['q', 'x'] did not match any Linear.Config in the model config "
            "tree.");
  EXPECT_THAT(error({.target_modules = {"lm_head"}}),
              HasSubstr("LoRAConverter converts none of the 15 linear layers"));
}

TEST(LoRA, ARankAboveOneSizeOfALayerIsAWarning) {
  const auto spec = small_spec({LoRAConverter({.rank = 40, .target_modules = {"w1", "wq"}})});
  ASSERT_EQ(spec.conversion_notes.size(), 3U);
  EXPECT_TRUE(spec.conversion_notes[0].is_warning);
  EXPECT_EQ(spec.conversion_notes[0].text,
            "LoRA rank 40 is above the smaller size of 4 layer(s), where it adds parameters and "
            "nothing else, such as layers.0.attention.qkv_linear.wq (64 x 32)");
}

TEST(Converters, AreMadeFromNothingByOneConstructor) {
  EXPECT_EQ(Float8LinearConverter({}).recipe_name, "rowwise");
  EXPECT_EQ(LoRAConverter({}).rank, 8);
  EXPECT_TRUE(FreezeConverter({}).fqns.empty());
}

TEST(Converters, AreDescribedByNameAndFields) {
  ModelSpec spec;
  spec.converters = {Float8LinearConverter({.recipe_name = "tensorwise"}), lora({"wq"})};
  EXPECT_THAT(
      models::describe_converters(spec),
      ElementsAre(R"(Float8LinearConverter {"recipe_name": "tensorwise", "filter_fqns": [], )"
                  R"("emulate": false})",
                  R"(LoRAConverter {"rank": 4, "alpha": 8.0, "target_modules": ["wq"], )"
                  R"("dropout": 0.0})"));
}

TEST(LoRA, ConvertersApplyInTheirOrderAndOnce) {
  ModelSpec spec =
      small_spec({lora({"wq"}), LoRAConverter({.rank = 2, .target_modules = {"wq", "wv"}}),
                  FreezeConverter({.fqns = {"layers.0.*"}})});
  models::apply_converters(spec);
  const Trained run = train(spec);
  const std::string qkv = "layers.1.attention.qkv_linear.";
  EXPECT_EQ(trained_names(run),
            (std::set<std::string>{qkv + "wq.lora_a.weight", qkv + "wq.lora_b.weight",
                                   qkv + "wv.lora_a.weight", qkv + "wv.lora_b.weight"}));
  EXPECT_EQ(run.start.at(qkv + "wq.lora_a.weight").size(), 4U * 32 * sizeof(float));
  EXPECT_EQ(run.start.at(qkv + "wv.lora_a.weight").size(), 2U * 32 * sizeof(float));
}

TEST(Float8, TrainsNearlyAsInFullPrecision) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    const Trained base = train(small_spec({}), compute, 0);
    // In float8 the three projections have a weight each.
    const Trained separate = train(small_spec({}, false, false), compute, 0);
    for (const char* recipe : {"rowwise", "rowwise_with_gw_hp", "tensorwise"}) {
      const Trained run =
          train(small_spec({Float8LinearConverter({.recipe_name = recipe})}), compute, 0);
      EXPECT_EQ(run.start, separate.start) << recipe;
      ASSERT_EQ(run.losses.size(), base.losses.size());
      EXPECT_NE(run.losses[0], base.losses[0]) << recipe << " computes in float8";
      for (size_t i = 0; i < run.losses.size(); ++i)
        EXPECT_NEAR(run.losses[i] / base.losses[i], 1, 0.05) << recipe << " " << i;
      EXPECT_LT(run.losses.back(), run.losses.front());
    }
  }
}

TEST(Float8, IsTheBaseOfAdaptersAndComesBeforeThem) {
  const Float8LinearConverter float8({.filter_fqns = {"lm_head"}});
  const Trained base = train(small_spec({float8}));
  const Trained run = train(small_spec({float8, lora({"wq", "w1"})}));
  EXPECT_EQ(run.losses[0], base.losses[0]);
  EXPECT_EQ(run.gradients.size(), 2U * 2 * 2);
  try {
    small_spec({lora({"wq", "w1"}), float8});
    ADD_FAILURE() << "adapters before float8 were accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("Float8LinearConverter must come before LoRAConverter"));
  }
}

TEST(Float8, SaysWhatItDid) {
  const auto spec =
      small_spec({Float8LinearConverter({.filter_fqns = {"feed_forward.w1", "no_such"}})}, true);
  ASSERT_EQ(spec.conversion_notes.size(), 2U);
  EXPECT_TRUE(spec.conversion_notes[0].is_warning);
  EXPECT_EQ(spec.conversion_notes[0].text,
            "Float8LinearConverter filter_fqns 'no_such' matches no linear layer");
  EXPECT_EQ(spec.conversion_notes[1].text,
            "Float8LinearConverter: 12 of 15 linear layers compute in float8 (recipe rowwise, "
            "emulated); skipped: layers.0.feed_forward.w1 (filter feed_forward.w1), "
            "layers.1.feed_forward.w1 (filter feed_forward.w1), lm_head (its weight is the "
            "embedding's)");
  EXPECT_TRUE(models::is_quantized(spec));
  EXPECT_THROW(small_spec({Float8LinearConverter({.filter_fqns = {"auto_filter_small_kn"}})}),
               Error);
  EXPECT_THROW(small_spec({Float8LinearConverter({.recipe_name = "fast"})}), Error);
}

}  // namespace
}  // namespace rhea::train_step
