// LoRA in native models: fused projections, the head, what is refused and what is said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rhea/base/error.h"
#include "rhea/components/train_step/train_step.h"
#include "rhea/models/converters/convert.h"
#include "rhea/models/converters/freeze.h"
#include "rhea/models/converters/lora.h"
#include "rhea/models/qwen3/qwen3.h"

namespace rhea::train_step {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kSeqLen = 32, kTokens = 64, kVocab = 96;

ModelSpec small_spec(Converters converters, bool tied = false, bool fused = true) {
  nn::CosSinRoPE::Config rope;
  rope.dim = 16;
  rope.max_position_embeddings = kSeqLen;
  ModelSpec spec;
  spec.name = "qwen3";
  spec.model = models::qwen3::build({.dim = 32,
                                     .n_layers = 2,
                                     .n_heads = 4,
                                     .n_kv_heads = 2,
                                     .head_dim = 16,
                                     .hidden_dim = 48,
                                     .vocab_size = kVocab,
                                     .tied = tied,
                                     .fuse_qkv = fused},
                                    rope);
  spec.converters = std::move(converters);
  models::apply_converters(spec);
  return spec;
}

struct Trained {
  std::vector<double> losses;
  std::map<std::string, std::vector<float>> start, end;
  std::set<std::string> trained;
};

Trained train(const ModelSpec& spec, DType compute = DType::f32, int64_t chunks = 4,
              int steps = 3) {
  StepOptions options;
  options.trace = {.num_tokens = kTokens, .seq_len = kSeqLen, .compute_dtype = compute};
  options.num_loss_chunks = chunks;
  options.optimizer->param_groups = {ParamGroup()};
  ThreadPool pool(2);
  TrainStep step(build_step_graphs(*spec.model.as<nn::Decoder::Config>(), options), options.trace,
                 {}, pool);
  step.initialise(3);
  Trained run;
  const auto keep = [&](std::map<std::string, std::vector<float>>& to) {
    for (const auto& tensors : {step.parameters(), step.frozen()})
      for (const auto& tensor : tensors) {
        auto& values = to[tensor.name];
        values.resize(static_cast<size_t>(ir::num_elements(tensor.type.shape)));
        std::memcpy(values.data(), tensor.data, values.size() * sizeof(float));
      }
  };
  keep(run.start);
  for (const auto& tensor : step.parameters()) run.trained.insert(tensor.name);
  std::vector<int32_t> tokens(kTokens), labels(kTokens), positions(kTokens);
  for (size_t t = 0; t < kTokens; ++t) {
    tokens[t] = static_cast<int32_t>(t * 37 % kVocab);
    labels[t] = static_cast<int32_t>((t * 53 + 7) % kVocab);
    positions[t] = static_cast<int32_t>(t % kSeqLen);
  }
  for (int k = 1; k <= steps; ++k) {
    run.losses.push_back(
        step.forward_backward({tokens.data(), labels.data(), positions.data()}, 1.0 / kTokens));
    step.update(k, std::vector<double>{1e-2}, 1);
  }
  keep(run.end);
  return run;
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
        EXPECT_EQ(run.trained.contains(name), adapter) << name;
        EXPECT_EQ(run.end.at(name) == values, !adapter) << name;
        if (!adapter) {
          EXPECT_EQ(values, base.start.at(name)) << name;
        }
      }
      EXPECT_EQ(run.trained.size(), 2U * (2 * 7 + 1));
    }
  }
}

TEST(LoRA, AStartsUniformAndBAtZero) {
  const Trained run = train(small_spec({lora({"w2"})}), DType::f32, 4, 1);
  const auto& a = run.start.at("layers.1.feed_forward.w2.lora_a.weight");
  const auto& b = run.start.at("layers.1.feed_forward.w2.lora_b.weight");
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
  EXPECT_EQ(fused.trained, separate.trained);
  for (size_t i = 0; i < fused.losses.size(); ++i)
    EXPECT_NEAR(fused.losses[i], separate.losses[i], 1e-6);
  for (const auto& name : fused.trained) {
    const auto &a = fused.end.at(name), &b = separate.end.at(name);
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
  EXPECT_THAT(error({.alpha = 0}), HasSubstr("LoRA alpha must be positive, got 0.0"));
  EXPECT_THAT(error({.dropout = 0.1}), HasSubstr("LoRA dropout must be 0, got 0.1"));
  EXPECT_EQ(error({.target_modules = {"q", "x"}}),
            "LoRA target_modules ['q', 'x'] did not match any Linear.Config in the model config "
            "tree.");
  EXPECT_THAT(error({.target_modules = {"lm_head"}}),
              HasSubstr("LoRAConverter converts none of the 15 linear layers"));
}

TEST(LoRA, ConvertersApplyInTheirOrderAndOnce) {
  ModelSpec spec =
      small_spec({lora({"wq"}), LoRAConverter({.rank = 2, .target_modules = {"wq", "wv"}}),
                  FreezeConverter({.fqns = {"layers.0.*"}})});
  models::apply_converters(spec);
  const Trained run = train(spec, DType::f32, 4, 1);
  const std::string qkv = "layers.1.attention.qkv_linear.";
  EXPECT_EQ(run.trained,
            (std::set<std::string>{qkv + "wq.lora_a.weight", qkv + "wq.lora_b.weight",
                                   qkv + "wv.lora_a.weight", qkv + "wv.lora_b.weight"}));
  EXPECT_EQ(run.start.at(qkv + "wq.lora_a.weight").size(), 4U * 32);
  EXPECT_EQ(run.start.at(qkv + "wv.lora_a.weight").size(), 2U * 32);
}

}  // namespace
}  // namespace rhea::train_step
