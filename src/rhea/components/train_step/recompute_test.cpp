// activation_checkpoint on whole models: memory falls, no bit of the training changes.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "rhea/components/train_step/train_step.h"
#include "rhea/models/llama3/llama3.h"
#include "rhea/models/qwen3/qwen3.h"

namespace rhea::train_step {
namespace {

constexpr int64_t kSeqLen = 64, kTokens = 128, kVocab = 192;

nn::Decoder::Config small_model(const std::string& family) {
  const bool qwen = family != "llama3";
  models::DecoderSizes sizes{.dim = 64,
                             .n_layers = 6,
                             .n_heads = 4,
                             .n_kv_heads = 2,
                             .head_dim = 16,
                             .hidden_dim = 160,
                             .vocab_size = kVocab,
                             .tied = qwen,
                             .qk_norm = qwen,
                             .fuse_qkv = qwen};
  if (family == "qwen3_moe") {
    sizes.hidden_dim = 48;
    sizes.experts = {.num_experts = 8, .top_k = 2, .load_balance_coeff = 1e-3};
  }
  nn::ComplexRoPE::Config rope;
  rope.dim = 16;
  rope.max_position_embeddings = kSeqLen;
  return qwen ? models::qwen3::build(sizes, rope) : models::llama3::build(sizes, rope);
}

StepOptions step_options(const std::string& mode, double budget, DType compute) {
  StepOptions options;
  options.trace = {.num_tokens = kTokens, .seq_len = kSeqLen, .compute_dtype = compute};
  ChunkedLossConfig chunked;
  chunked.num_chunks = 4;
  options.loss = chunked;
  options.accumulates = true;
  options.activation_checkpoint.mode = mode;
  options.activation_checkpoint.memory_budget = budget;

  options.optimizer->param_groups = {ParamGroup()};
  return options;
}

// Everything two optimizer steps of two microbatches leave behind, as bytes.
struct Trained {
  std::vector<double> losses;
  std::string gradients, parameters;
  StepMemory memory;
};

// `skips`: each step is preceded by one whose gradients are thrown away.
Trained train(const std::string& family, const StepOptions& options,
              const exec::cpu::CompileOptions& compile = {}, bool skips = false) {
  ThreadPool pool(2);
  TrainStep step(build_step_graphs(small_model(family), options), options.trace, compile, pool);
  step.initialise(7);
  const auto append = [](std::string& to, std::span<const StateTensor> tensors) {
    for (const auto& tensor : tensors)
      to.append(static_cast<const char*>(tensor.data),
                static_cast<size_t>(ir::byte_size(tensor.type)));
  };
  Trained result;
  result.memory = step.memory();
  std::vector<int32_t> tokens(kTokens), labels(kTokens), positions(kTokens);
  uint32_t random = 1;
  for (int64_t k = 1; k <= 2; ++k) {
    for (int microbatch = 0; microbatch < (options.accumulates ? 2 : 1); ++microbatch) {
      for (size_t t = 0; t < kTokens; ++t) {
        random = random * 1664525 + 1013904223;
        tokens[t] = static_cast<int32_t>((random >> 16) % kVocab);
        labels[t] = t % 9 == 0 ? -100 : static_cast<int32_t>((random >> 8) % kVocab);
        positions[t] = static_cast<int32_t>(t % kSeqLen % 40);  // two documents a row
      }
      const Batch batch{tokens.data(), labels.data(), positions.data()};
      if (skips) {
        step.forward_backward(batch, 1);
        step.discard_gradients();
      }
      result.losses.push_back(step.forward_backward(batch, 1.0 / 200));
    }
    append(result.gradients, step.gradients());
    append(result.gradients, step.loads());
    step.update(k, std::vector<double>{1e-3}, 1);
  }
  append(result.parameters, step.parameters());
  append(result.parameters, step.constants());
  return result;
}

struct Case {
  const char* mode;
  double budget;
};
constexpr Case kCases[] = {{"none", 0},
                           {"full", 0},
                           {"selective", 0},
                           {"memory_budget", 0},
                           {"memory_budget", 0.5},
                           {"memory_budget", 1}};

class Recompute : public testing::TestWithParam<std::tuple<const char*, DType>> {};

TEST_P(Recompute, NoModeChangesABit) {
  const auto& [family, dtype] = GetParam();
  auto all_kept = step_options("none", 0, dtype);
  all_kept.disable_passes = {"remat"};
  const Trained kept = train(family, all_kept);
  ASSERT_GT(kept.losses[0], 0.1);
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c.mode << " " << c.budget);
    const Trained again = train(family, step_options(c.mode, c.budget, dtype));
    EXPECT_EQ(again.losses, kept.losses);
    EXPECT_TRUE(again.gradients == kept.gradients);
    EXPECT_TRUE(again.parameters == kept.parameters);
  }
}

// How much falls is a matter of the model; these are dense.
class RecomputeMemory : public Recompute {};

TEST_P(RecomputeMemory, FallsWithWhatIsKept) {
  const auto& [family, dtype] = GetParam();
  const auto arena = [&](const char* mode, double budget) {
    const auto options = step_options(mode, budget, dtype);
    return plan_step(build_step_graphs(small_model(family), options), 1, {}).memory.activations;
  };
  const int64_t none = arena("none", 0), full = arena("full", 0), selective = arena("selective", 0);
  EXPECT_LT(full, selective);
  EXPECT_LT(selective, none);
  EXPECT_LT(3 * full, 2 * none);
  EXPECT_EQ(arena("memory_budget", 1), none);
  const int64_t half = arena("memory_budget", 0.5);
  EXPECT_GT(half, full);
  EXPECT_LT(half, none);
  EXPECT_LE(arena("memory_budget", 0), full + full / 20);
  auto off = step_options("full", 0, dtype);
  off.disable_passes = {"remat"};
  // Without the pass, SwiGLU's products are kept too.
  EXPECT_GT(plan_step(build_step_graphs(small_model(family), off), 1, {}).memory.activations, none);
}

TEST_P(Recompute, SharingTheArenaChangesNoBit) {
  const auto& [family, dtype] = GetParam();
  for (const char* mode : {"none", "full"}) {
    for (const bool accumulates : {false, true}) {
      SCOPED_TRACE(testing::Message() << mode << " accumulates " << accumulates);
      auto options = step_options(mode, 0, dtype);
      options.accumulates = accumulates;
      const Trained shared = train(family, options);
      const Trained apart = train(family, options, {.disable_passes = {"share_arena"}});
      EXPECT_EQ(shared.losses, apart.losses);
      EXPECT_TRUE(shared.gradients == apart.gradients);
      EXPECT_TRUE(shared.parameters == apart.parameters);
      // All of them side by side, against each while it is needed.
      const StepMemory& memory = apart.memory;
      EXPECT_GE(memory.arena, memory.gradients + memory.prepared + memory.activations);
      // Gradients that wait for the next microbatch share nothing.
      EXPECT_LT(100 * shared.memory.arena, (accumulates ? 101 : 80) * apart.memory.arena);
    }
  }
}

TEST_P(Recompute, ThePlanIsTheArenaToTheByte) {
  const auto& [family, dtype] = GetParam();
  for (const char* mode : {"none", "full"}) {
    const auto options = step_options(mode, 0, dtype);
    const StepMemory real = train(family, options).memory;
    const StepMemory planned =
        plan_step(build_step_graphs(small_model(family), options), 2, {}).memory;
    EXPECT_EQ(planned.arena, real.arena);
    EXPECT_EQ(planned.activations, real.activations);
    EXPECT_EQ(planned.prepared, real.prepared);
    EXPECT_EQ(planned.gradients, real.gradients);
    EXPECT_EQ(planned.scratch, real.scratch);
  }
}

// The weights that were prepared for the skipped step are gone, and must be made again.
TEST_P(Recompute, ASkippedStepLeavesNoTrace) {
  const auto& [family, dtype] = GetParam();
  auto options = step_options("none", 0, dtype);
  options.accumulates = false;
  const Trained skipped = train(family, options, {}, true);
  const Trained plain = train(family, options);
  EXPECT_EQ(skipped.losses, plain.losses);
  EXPECT_TRUE(skipped.parameters == plain.parameters);
}

std::string case_name(const testing::TestParamInfo<Recompute::ParamType>& info) {
  return std::string(std::get<0>(info.param)) +
         (std::get<1>(info.param) == DType::f32 ? "_f32" : "_bf16");
}

INSTANTIATE_TEST_SUITE_P(Models, Recompute,
                         testing::Combine(testing::Values("llama3", "qwen3", "qwen3_moe"),
                                          testing::Values(DType::f32, DType::bf16)),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Models, RecomputeMemory,
                         testing::Combine(testing::Values("llama3", "qwen3"),
                                          testing::Values(DType::f32, DType::bf16)),
                         case_name);

TEST(BudgetCurve, IsMadeWhenItIsAskedFor) {
  auto options = step_options("memory_budget", 0.5, DType::f32);
  EXPECT_TRUE(build_step_graphs(small_model("llama3"), options).budget_curve.empty());
  options.activation_checkpoint.visualize_memory_budget_pareto = true;
  const auto curve = build_step_graphs(small_model("llama3"), options).budget_curve;
  ASSERT_EQ(curve.size(), 21u);
  EXPECT_LT(curve.front().bytes.arena, curve.back().bytes.arena);
  EXPECT_GT(curve.front().recomputed_flops, 0);
  EXPECT_LT(10 * curve.back().recomputed_flops, curve.front().recomputed_flops);  // SwiGLU alone
}

TEST(RecomputeTexts, OneThatMatchesNoProductIsAnError) {
  auto options = step_options("selective", 0, DType::f32);
  options.activation_checkpoint.force_recompute_mm_shapes_by_fqns = {"feed_forward.w9"};
  try {
    build_step_graphs(small_model("llama3"), options);
    FAIL() << "no error";
  } catch (const std::exception& error) {
    EXPECT_NE(
        std::string(error.what()).find("'feed_forward.w9' is in the FQN of no matrix product"),
        std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace rhea::train_step
