// Kernels, rows and modules from outside in a small model.
#include "rhea/check/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "rhea/base/error.h"
#include "rhea/config/derive.h"
#include "rhea/config/override_registry.h"
#include "rhea/models/llama3/llama3.h"
#include "rhea/models/qwen3/qwen3.h"
#include "rhea/nn/feed_forward.h"
#include "rhea/ops/ops.h"
#include "rhea/ops/row.h"
#include "rhea/ops/table.h"
#include "rhea/run_overrides.h"

namespace rhea::check {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TrainerConfig small() {
  TrainerConfig config;
  config.model_spec = models::qwen3::model_registry("debugmodel");
  config.training.seq_len = 48;
  config.training.local_batch_size = 2;
  config.executor.num_threads = 2;
  return config;
}

// silu(g) * u in f32 with `factor`, and its backward with `backward_factor`.
void swiglu(float factor, const ir::KernelArgs& args) {
  const float *gate = args.in[0].as<const float>(), *up = args.in[1].as<const float>();
  for (int64_t i = args.begin; i < args.end; ++i) {
    args.out[0].as<float>()[i] = factor * (gate[i] / (1 + std::exp(-gate[i]))) * up[i];
  }
}

std::string only_f32(const ir::OpInstance& node) {
  return node.in[0].dtype == DType::f32 ? "" : "f32 only";
}
int64_t elements(const ir::OpInstance& node) { return ops::num_elements(node.out[0].shape); }

struct Outcome {
  bool good = false;
  std::string text;
};
Outcome check(const TrainerConfig& config, const CheckOptions& options = {}) {
  std::ostringstream out;
  const bool good = run_check(config, out, options);
  return {good, out.str()};
}

// Adds a kernel as a file NAME.cpp would; each test takes its own out again.
void add_kernel(std::string_view op, std::string_view name,
                std::string (*accepts)(const ir::OpInstance&),
                void (*run)(const ir::KernelArgs&, const ir::OpInstance&)) {
  ops::add_cpu_kernel(
      op, ops::to_cpu_kernel({.name = name, .accepts = accepts, .items = elements, .run = run}),
      std::string(name) + ".cpp");
}
void right_swiglu(const ir::KernelArgs& args, const ir::OpInstance&) { swiglu(1, args); }
void no_run(const ir::KernelArgs&, const ir::OpInstance&) { FAIL() << "was refused"; }

TEST(Check, WithNothingFromOutsideItSaysSo) {
  std::ostringstream out;
  EXPECT_THROW(run_check(small(), out), Error);
}

TEST(Check, ARightKernelPassesAndItsRefusalsAreTold) {
  const ops::ScopedAdditions added;
  add_kernel("swiglu", "mine", only_f32, right_swiglu);
  const auto [good, text] = check(small());
  EXPECT_TRUE(good) << text;
  EXPECT_THAT(text, HasSubstr("kernel mine: the run computes in bf16, where it runs no node: "
                              "f32 only"));
  EXPECT_THAT(
      text, AllOf(HasSubstr("kernels of mine.cpp for swiglu: the contract"),
                  HasSubstr("kernels for swiglu in the run's graphs: mine of mine.cpp"),
                  HasSubstr("float32, 2 rows of 48 (the run)"), HasSubstr("float32, 3 rows of 37"),
                  HasSubstr("float32, 1 row of 1"), HasSubstr("bfloat16, 2 rows of 48 (the run)"),
                  HasSubstr("kernel mine refuses: f32 only"), HasSubstr("max rel"),
                  HasSubstr("units in the last place from stock: 0:"), HasSubstr("time "),
                  HasSubstr("all within their tolerances")));
}

// A batch of a few thousand tokens is within the bound; what is not passes with a reservation.
TEST(Check, TheReferenceIsThereOnTheBatchOfARunAndItsAbsenceIsTold) {
  const ops::ScopedAdditions added;
  add_kernel("swiglu", "mine", only_f32, right_swiglu);
  TrainerConfig config = small();
  config.training.seq_len = 512;
  const auto [good, text] = check(config);
  EXPECT_TRUE(good) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("float32, 2 rows of 512 (the run)"), HasSubstr("from f64"),
                          Not(HasSubstr("WITHOUT THE F64"))));
  const auto [still_good, without] = check(config, {.max_reference_flops = 1e6});
  EXPECT_TRUE(still_good) << without;
  EXPECT_THAT(without,
              AllOf(HasSubstr("WITHOUT THE F64 REFERENCE, compared with stock alone: it takes "),
                    HasSubstr("ok, but "), HasSubstr(" comparisons without the f64 reference"),
                    HasSubstr("rhea check: 1 passed without the f64 reference, against stock "
                              "alone:\n"),
                    HasSubstr(" comparisons (--max_reference_gflop raises the bound): kernels")));
}

TEST(Check, AWrongBackwardKernelIsCaught) {
  const ops::ScopedAdditions added;
  // The gradient of the gate, a tenth of a percent too large; the forward is left alone.
  add_kernel("swiglu_grad", "wrong", only_f32,
             [](const ir::KernelArgs& args, const ir::OpInstance&) {
               for (int64_t i = args.begin; i < args.end; ++i) {
                 const float g = args.in[0].as<const float>()[i];
                 const float u = args.in[1].as<const float>()[i];
                 const float dy = args.in[2].as<const float>()[i];
                 const float s = 1 / (1 + std::exp(-g));
                 args.out[0].as<float>()[i] = 1.001F * dy * u * s * (1 + g * (1 - s));
                 args.out[1].as<float>()[i] = dy * g * s;
               }
             });
  const auto [good, text] = check(small());
  EXPECT_FALSE(good);
  EXPECT_THAT(text,
              AllOf(HasSubstr("FAULT: relative error"), HasSubstr("FAILED"),
                    HasSubstr("kernels for swiglu_grad in the run's graphs: wrong of wrong.cpp")));
}

TEST(Check, AKernelThatEveryNodeRefusesIsNotChecked) {
  const ops::ScopedAdditions added;
  add_kernel(
      "swiglu", "picky", [](const ir::OpInstance&) { return std::string("needs a GPU"); }, no_run);
  const auto [good, text] = check(small());
  EXPECT_FALSE(good);
  EXPECT_THAT(text, AllOf(HasSubstr("kernel picky runs none of the samples: needs a GPU"),
                          HasSubstr("NOT CHECKED: kernel picky of picky.cpp: no node of the run's "
                                    "batch runs it, so the run does not use it: needs a GPU"),
                          HasSubstr("1 of 1 NOT CHECKED"), Not(HasSubstr("FAILED"))));
}

TEST(Check, AKernelBehindOneThatTakesEverythingIsNotChecked) {
  const ops::ScopedAdditions added;
  const auto all = [](const ir::OpInstance& node) { return only_f32(node); };
  add_kernel("swiglu", "first", all, right_swiglu);
  add_kernel("swiglu", "second", all, right_swiglu);
  const auto [good, text] = check(small());
  EXPECT_FALSE(good);
  EXPECT_THAT(text, AllOf(HasSubstr("NOT CHECKED: kernel second of second.cpp"),
                          HasSubstr("kernel first of first.cpp comes before it and takes the node"),
                          Not(HasSubstr("NOT CHECKED: kernel first"))));
}

// The model has RMS norms only.
TEST(Check, AKernelOfAnOpThatTheRunLacksIsCheckedOnSamplesOrNotAtAll) {
  {
    const ops::ScopedAdditions added;
    add_kernel(
        "layer_norm", "never",
        [](const ir::OpInstance&) { return std::string("needs rows of 4096"); }, no_run);
    const auto [good, text] = check(small());
    EXPECT_FALSE(good);
    EXPECT_THAT(text, HasSubstr("NOT CHECKED: kernel never of never.cpp: no node of the run has "
                                "this op, and no sample runs it: needs rows of 4096"));
  }
  const ops::ScopedAdditions added;
  add_kernel("tanh", "mine", only_f32, [](const ir::KernelArgs& args, const ir::OpInstance&) {
    for (int64_t i = args.begin; i < args.end; ++i)
      args.out[0].as<float>()[i] = std::tanh(args.in[0].as<const float>()[i]);
  });
  const auto [good, text] = check(small());
  EXPECT_TRUE(good) << text;
  EXPECT_THAT(text, HasSubstr("kernel mine: no node of the run has this op; it was checked on "));
}

TEST(Check, AKernelThatThrowsIsAFault) {
  const ops::ScopedAdditions added;
  add_kernel(
      "swiglu", "throws",
      [](const ir::OpInstance& node) {
        // Samples are smaller than the batch of the run.
        return std::string(ir::num_elements(node.in[0].shape) > 2048 ? "" : "small");
      },
      [](const ir::KernelArgs&, const ir::OpInstance&) { throw Error("no number fits"); });
  const auto [good, text] = check(small());
  EXPECT_FALSE(good);
  EXPECT_THAT(text, AllOf(HasSubstr("FAULT: float32, 2 rows of 48 (the run)"),
                          HasSubstr("threw: no number fits"), HasSubstr("FAILED")));
}

// Another origin's row brings its kernel itself.
TEST(Check, AKernelOfAnOutsideRowNeedsASample) {
  static const ir::OpDef kRow{
      .name = "check_test_unsampled",
      .infer = [](std::span<const ir::Type> in,
                  const ir::Attrs&) { return std::vector<ir::Type>{in[0]}; },
      .decompose = [](ir::Graph&, std::span<const ir::Value> in,
                      const ir::Attrs&) { return std::vector<ir::Value>{ops::negate(in[0])}; },
      .cpu = {{.name = "wide",
               .accepts = [](const ir::OpInstance&) { return std::string("needs 4096 columns"); },
               .plan = [](const ir::OpInstance&) { return ir::KernelPlan{}; }}},
      .samples = []() -> std::vector<ir::Sample> {
        return {{.name = "f32", .inputs = {ops::uniform(DType::f32, {5, 7})}}};
      },
  };
  const ops::ScopedAdditions added;
  ops::add_op(kRow, "row.cpp");
  const auto [good, text] = check(small());
  EXPECT_FALSE(good);
  EXPECT_THAT(text, HasSubstr("NOT CHECKED: kernel wide runs none of the samples: needs 4096 "
                              "columns; give the row a sample that it takes"));
}

// ---- modules

// silu(gate) * up, and silu(gate) again for the backward.
template <int backward_percent>
ir::OpDef gated_row(std::string_view name) {
  return {
      .name = name,
      .infer =
          [](std::span<const ir::Type> in, const ir::Attrs&) {
            ops::expect_operands(in, {"gate", "up"});
            ops::expect_same_types(in);
            return std::vector<ir::Type>{in[0], in[0]};
          },
      .decompose = [](ir::Graph&, std::span<const ir::Value> in,
                      const ir::Attrs&) -> std::vector<ir::Value> {
        const ir::Value silu = ops::silu(in[0]);
        return {silu * in[1], silu};
      },
      .vjp = [](const ir::VjpArgs& args) -> std::vector<ir::Value> {
        // silu' = s + silu (1 - s), with the saved silu, in f32.
        const ir::Value s = ops::logistic(ops::widen(args.inputs[0]));
        const ir::Value silu = ops::widen(args.outputs[1]), dy = ops::widen(args.cotangents[0]);
        const ir::Value dg = dy * ops::widen(args.inputs[1]) * (s + silu - silu * s);
        return {ops::convert(ops::multiply(dg, backward_percent / 100.0), args.inputs[0].dtype()),
                ops::convert(dy * silu, args.inputs[1].dtype())};
      },
      .shard = [](const ir::OpInstance&) { return std::string("tf,tf->tf,tf"); },
      .samples = []() -> std::vector<ir::Sample> {
        return {{.name = "f32",
                 .inputs = {ops::uniform(DType::f32, {5, 7}), ops::uniform(DType::f32, {5, 7})}}};
      },
  };
}
const ir::OpDef kGated = gated_row<100>("check_test_gated");
const ir::OpDef kWrong = gated_row<101>("check_test_wrong");
const ir::OpDef kNoGradient{
    .name = "check_test_no_gradient",
    .infer = kGated.infer,
    .cost = ops::cost_per_element(5),
    .reference =
        [](const ir::ReferenceArgs& args) {
          for (size_t i = 0; i < args.in[0].size(); ++i)
            args.out[0][i] = args.in[0][i] / (1 + std::exp(-args.in[0][i])) * args.in[1][i];
        },
};

template <const ir::OpDef* op>
struct GatedFeedForward : nn::FeedForward::Config {
  nn::Value forward(nn::Trace& trace, nn::Value x_TD) const override {
    const nn::Value gate = nn::call(trace, names->w1, *w1, x_TD);
    const nn::Value up = nn::call(trace, names->w3, *w3, x_TD);
    return nn::call(trace, names->w2, *w2, trace.graph().add(*op, {{gate, up}})[0]);
  }
};
struct MyRoPE : nn::RopeFields {
  nn::Value forward(nn::Trace& trace, nn::Value x_TNH) const override {
    return rotate(trace, x_TNH, false);
  }
};
// Wider than the model allows in odd batches.
struct PickyRoPE : MyRoPE {
  nn::Value forward(nn::Trace& trace, nn::Value x_TNH) const override {
    nn::require_multiple("my_rope", "sequence length", trace.options().seq_len, 16);
    return MyRoPE::forward(trace, x_TNH);
  }
};

template <int percent>
struct ScaledLinear : nn::Linear::Config {
  nn::Value forward(nn::Trace& trace, nn::Value x) const override {
    return ops::multiply(nn::Linear::Config::forward(trace, x), percent / 100.0);
  }
};

template <class Target, class To>
void add_override(std::string_view name, OverrideOptions options = {}) {
  config::override_registry().add<Target>(
      name, std::move(options), [](const Target& stock) { return derive<To>(stock); },
      "check_test.cpp");
}

Outcome check_override(const std::string& name, TrainerConfig config = small()) {
  static const bool registered = [] {
    add_override<nn::FeedForward::Config, GatedFeedForward<&kGated>>("gated");
    add_override<nn::FeedForward::Config, GatedFeedForward<&kWrong>>("wrong_backward");
    add_override<nn::FeedForward::Config, GatedFeedForward<&kNoGradient>>("no_gradient");
    for (const double beta : {0.95, 0.9})
      config::override_registry().add<OptimizerConfig>(
          beta == 0.95 ? "same_optimizer" : "other_optimizer", {},
          [beta](const OptimizerConfig&) {
            AdamW::Config made;
            made.param_groups[0].optimizer_kwargs.betas = {0.9, beta};
            return made;
          },
          "check_test.cpp");
    add_override<nn::Linear::Config, ScaledLinear<100>>("same_head", {.fqns = {"lm_head"}});
    add_override<nn::Linear::Config, ScaledLinear<102>>("wrong_head", {.fqns = {"lm_head"}});
    config::override_registry().add<DataloaderConfig>(
        "same_data", {}, [](const DataloaderConfig& stock) { return stock; }, "check_test.cpp");
    add_override<nn::CosSinRoPE::Config, MyRoPE>("my_rope");
    add_override<nn::CosSinRoPE::Config, PickyRoPE>("picky_rope");
    return true;
  }();
  (void)registered;
  config.override.imports = {name};
  apply_overrides(config);
  return check(config);
}

TEST(Check, ARotationMustNotChangeABit) {
  const auto [good, text] = check_override("my_rope");
  EXPECT_TRUE(good) << text;
  EXPECT_THAT(text,
              AllOf(HasSubstr("override my_rope: model_spec.model.layers.0.attention.rope "
                              "CosSinRoPE.Config -> MyRoPE"),
                    HasSubstr("nodes alike"), HasSubstr("not a bit may differ"), HasSubstr("y0"),
                    HasSubstr("dx0"), HasSubstr("max abs 0 "), HasSubstr("from stock: 0: 100 %")));
}

TEST(Check, LimitsThatTheRunKeepsAreNoFault) {
  const auto [good, text] = check_override("picky_rope");
  EXPECT_TRUE(good) << text;
  EXPECT_THAT(
      text,
      HasSubstr(
          "3 rows of 37: refused: Override 'picky_rope' at "
          "model_spec.model.layers.0.attention.rope: my_rope requires a sequence length that is a "
          "multiple of 16, got 37"));
}

TEST(Check, AnOpWithSavedTensorsPassesWithTheGradientsOfParameters) {
  const auto [good, text] = check_override("gated");
  EXPECT_TRUE(good) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("d layers.0.feed_forward.w1.weight"), HasSubstr("dx0"),
                          HasSubstr("tolerance 0.01")));
}

TEST(Check, AModuleWhoseBackwardIsWrongIsCaughtThoughItsForwardIsRight) {
  const auto [good, text] = check_override("wrong_backward");
  EXPECT_FALSE(good);
  EXPECT_THAT(text, AllOf(HasSubstr("FAULT: relative error"), HasSubstr("1 of"),
                          Not(testing::ContainsRegex("y0 [^\n]*FAULT"))));
}

TEST(Check, AnOptimizerIsComparedByItsUpdate) {
  EXPECT_TRUE(check_override("same_optimizer").good);
  const auto [good, text] = check_override("other_optimizer");
  EXPECT_FALSE(good);
  EXPECT_THAT(text, AllOf(HasSubstr("override other_optimizer: optimizer "),
                          HasSubstr("step 3: new."), HasSubstr("FAULT")));
}

// No module calls the head; the loss makes of it what it likes.
TEST(Check, AHeadIsComparedThroughTheLoss) {
  TrainerConfig config = small();
  config.model_spec = models::llama3::model_registry("debugmodel");
  const auto right = check_override("same_head", config);
  EXPECT_TRUE(right.good) << right.text;
  EXPECT_THAT(right.text, AllOf(HasSubstr("compared from the last hidden states to the loss"),
                                HasSubstr("d lm_head.weight")));
  EXPECT_FALSE(check_override("wrong_head", config).good);
}

TEST(Check, WhatHasNoFunctionIsListedAsThat) {
  const auto [good, text] = check_override("same_data");
  EXPECT_TRUE(good);
  EXPECT_THAT(text, AllOf(HasSubstr("nothing to compare"), Not(HasSubstr("ok\n")),
                          Not(HasSubstr("all within their tolerances"))));
}

TEST(Check, AnOpWithoutAGradientIsNamed) {
  const auto [good, text] = check_override("no_gradient");
  EXPECT_FALSE(good);
  EXPECT_THAT(text, HasSubstr("check_test_no_gradient has no gradient: the row has neither vjp nor "
                              "decomposition"));
}

}  // namespace
}  // namespace rhea::check
