// The bias that balances experts: what is counted, and how it moves.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "rhea/components/train_step/train_step.h"
#include "rhea/models/converters/freeze.h"
#include "rhea/models/converters/lora.h"
#include "rhea/models/qwen3/qwen3.h"

namespace rhea::train_step {
namespace {

constexpr int64_t kSeqLen = 16, kTokens = 32, kVocab = 64, kExperts = 4, kTopK = 2;

using Counts = std::vector<int32_t>;

std::vector<float> floats(const StateTensor& tensor) {
  const auto* data = static_cast<const float*>(tensor.data);
  return {data, data + ir::num_elements(tensor.type.shape)};
}

class Balance : public testing::Test {
 protected:
  explicit Balance(int64_t top_k = kTopK, const std::string& recompute = "none",
                   const ModelConverter* converter = nullptr) {
    models::DecoderSizes sizes{.dim = 32,
                               .n_layers = 2,
                               .n_heads = 2,
                               .n_kv_heads = 1,
                               .head_dim = 16,
                               .hidden_dim = 24,
                               .vocab_size = kVocab};
    sizes.experts = {.num_experts = kExperts, .top_k = top_k, .load_balance_coeff = 1e-3};
    nn::CosSinRoPE::Config rope;
    rope.max_position_embeddings = kSeqLen;
    StepOptions options;
    options.trace = {.num_tokens = kTokens, .seq_len = kSeqLen};
    options.accumulates = true;
    options.activation_checkpoint.mode = recompute;
    options.optimizer->param_groups = {ParamGroup()};
    Slot<Config> model = models::qwen3::build(sizes, rope);
    if (converter != nullptr) converter->convert(model, notes_);
    step_ =
        std::make_unique<TrainStep>(build_step_graphs(*model.as<nn::Decoder::Config>(), options),
                                    options.trace, exec::cpu::CompileOptions{}, pool_);
    step_->initialise(3);
    for (size_t t = 0; t < kTokens; ++t) {
      tokens_.push_back(static_cast<int32_t>((t * 37 + 11) % kVocab));
      labels_.push_back(static_cast<int32_t>((t * 5 + 1) % kVocab));
      positions_.push_back(static_cast<int32_t>(t % kSeqLen));
    }
  }

  void run_microbatch(const std::vector<int32_t>* is_token = nullptr) {
    step_->forward_backward({tokens_.data(), labels_.data(), positions_.data(),
                             is_token == nullptr ? nullptr : is_token->data()},
                            1.0 / kTokens);
  }
  Counts counts(size_t layer) const {
    const auto* data = static_cast<const int32_t*>(step_->loads()[layer].data);
    return {data, data + kExperts};
  }
  std::vector<float> bias(size_t layer) const { return floats(step_->constants()[layer]); }
  // Tokens that go to the fullest expert of a layer, over the mean.
  double fullest_over_mean(size_t layer) const {
    const Counts n = counts(layer);
    const int sum = std::accumulate(n.begin(), n.end(), 0);
    return std::ranges::max(n) * static_cast<double>(n.size()) / sum;
  }
  // Only the balance moves something.
  void update() { step_->update(++num_updates_, std::vector<double>{0}, 1); }
  // All experts are worth the same to every token: ties go to the lowest.
  void forget_gates() {
    for (const auto& tensor : step_->parameters())
      if (tensor.name.ends_with("router.gate.weight"))
        std::memset(tensor.data, 0, static_cast<size_t>(ir::byte_size(tensor.type)));
    step_->parameters_changed();
  }
  // What all tokens have in common outweighs what tells them apart: they like the same experts.
  void crowd_experts() {
    for (const auto& tensor : step_->parameters()) {
      auto* data = static_cast<float*>(tensor.data);
      const auto count = static_cast<size_t>(ir::num_elements(tensor.type.shape));
      if (tensor.name.ends_with("tok_embeddings.weight"))
        for (size_t i = 0; i < count; ++i) data[i] += 0.3F;
      if (tensor.name.ends_with("router.gate.weight"))
        for (size_t i = 0; i < count; ++i) data[i] *= 2;
    }
    step_->parameters_changed();
  }

  ThreadPool pool_{2};
  std::unique_ptr<TrainStep> step_;
  std::vector<int32_t> tokens_, labels_, positions_;
  int64_t num_updates_ = 0;
  std::vector<ConversionNote> notes_;
};

TEST_F(Balance, BiasesAreConstantsOfTheirLayers) {
  ASSERT_EQ(step_->constants().size(), 2u);
  EXPECT_EQ(step_->constants()[1].name, "layers.1.moe.expert_bias_E");
  EXPECT_EQ(step_->constants()[1].type, (ir::Type{DType::f32, {kExperts}}));
  EXPECT_EQ(bias(0), (std::vector<float>{0, 0, 0, 0}));
  for (const auto& parameter : step_->parameters())
    EXPECT_EQ(parameter.name.find("expert_bias"), std::string::npos);
}

TEST_F(Balance, CountsGoOverAllMicrobatchesOfAStep) {
  run_microbatch();
  const Counts once = counts(0);
  EXPECT_EQ(std::accumulate(once.begin(), once.end(), 0), kTokens * kTopK);
  run_microbatch();
  for (size_t e = 0; e < kExperts; ++e) EXPECT_EQ(counts(0)[e], 2 * once[e]);
  step_->discard_gradients();
  run_microbatch();
  EXPECT_EQ(counts(0), once);
}

// The rule in numbers that were written down by hand, against the counts that the step saw.
TEST_F(Balance, TheBiasMovesTowardsExpertsWithFewTokens) {
  run_microbatch();
  run_microbatch();
  std::vector<std::vector<float>> expected;
  for (size_t layer = 0; layer < 2; ++layer) {
    const Counts n = counts(layer);
    const int64_t sum = std::accumulate(n.begin(), n.end(), int64_t{0});
    std::vector<float> delta;
    for (const int32_t count : n)
      delta.push_back(count * kExperts > sum ? -1e-3F : count * kExperts < sum ? 1e-3F : 0.0F);
    const float mean = std::accumulate(delta.begin(), delta.end(), 0.0F) / kExperts;
    for (float& d : delta) d -= mean;
    expected.push_back(delta);
  }
  const std::vector<float> gates = floats(step_->parameters()[0]);
  update();
  for (size_t layer = 0; layer < 2; ++layer)
    for (size_t e = 0; e < kExperts; ++e)
      EXPECT_NEAR(bias(layer)[e], expected[layer][e], 1e-9) << layer << " " << e;
  EXPECT_EQ(floats(step_->parameters()[0]), gates);  // the learning rate was 0
}

// A bias that stands still, or that moves the other way, leaves the load as crowded as it was.
TEST_F(Balance, ManyStepsSpreadTheTokensOfACrowdedRouter) {
  constexpr int kSteps = 400, kLast = 20;
  crowd_experts();
  std::vector<double> first, last(2, 0);
  for (int step = 0; step < kSteps; ++step) {
    run_microbatch();
    for (size_t layer = 0; layer < 2; ++layer) {
      if (step == 0) first.push_back(fullest_over_mean(layer));
      if (step >= kSteps - kLast) last[layer] += fullest_over_mean(layer) / kLast;
    }
    update();
  }
  for (size_t layer = 0; layer < 2; ++layer) {
    EXPECT_GE(first[layer], 1.9) << "the case is balanced from the start; layer " << layer;
    EXPECT_LE(last[layer], 1.4) << "layer " << layer << ", at first " << first[layer];
  }
}

// What padding holds changes no count.
TEST_F(Balance, PaddingIsNoLoad) {
  std::vector<int32_t> is_token(kTokens, 1);
  for (size_t t = 0; t < kTokens; ++t)
    if (t % kSeqLen >= kSeqLen / 2) is_token[t] = 0, labels_[t] = -100;
  run_microbatch(&is_token);
  const Counts before[] = {counts(0), counts(1)};
  EXPECT_EQ(std::accumulate(before[1].begin(), before[1].end(), 0), kTokens / 2 * kTopK);
  step_->discard_gradients();
  for (size_t t = 0; t < kTokens; ++t)
    if (is_token[t] == 0) tokens_[t] = 0;
  run_microbatch(&is_token);
  EXPECT_EQ(counts(0), before[0]);
  EXPECT_EQ(counts(1), before[1]);
}

// Adapters are trained on a base that stays as it is: the choice of experts by it too.
class BalanceUnderLora : public Balance {
 protected:
  BalanceUnderLora() : Balance(kTopK, "none", &converter_) {}
  inline static const LoRAConverter converter_{{.rank = 2}};
};

TEST_F(BalanceUnderLora, TheBiasStaysAndLoadIsCounted) {
  ASSERT_EQ(step_->loads().size(), 2u);
  for (int i = 0; i < 2; ++i) {
    run_microbatch();
    const Counts n = counts(1);
    EXPECT_EQ(std::accumulate(n.begin(), n.end(), 0), kTokens * kTopK);
    update();
  }
  const std::vector<float> zero(kExperts, 0);
  EXPECT_EQ(bias(0), zero);
  EXPECT_EQ(bias(1), zero);
  ASSERT_FALSE(notes_.empty());
  EXPECT_EQ(notes_.back().text,
            "LoRA freezes the bias that balances the experts of 2 layer(s) with the rest of the "
            "base model");
}

class BalanceHalfFrozen : public Balance {
 protected:
  BalanceHalfFrozen() : Balance(kTopK, "none", &converter_) {}
  inline static const FreezeConverter converter_{{.fqns = {"layers.0.*"}}};
};

TEST_F(BalanceHalfFrozen, AFrozenLayerKeepsItsBias) {
  run_microbatch();
  ASSERT_NE(counts(1)[0], counts(1)[1]) << "the case moves nothing";
  update();
  const std::vector<float> zero(kExperts, 0);
  EXPECT_EQ(bias(0), zero);
  EXPECT_NE(bias(1), zero);
}

class BalanceFrozen : public Balance {
 protected:
  BalanceFrozen() : Balance(kTopK, "none", &converter_) {}
  inline static const FreezeConverter converter_{{.fqns = {"*.expert_bias_E"}}};
};

TEST_F(BalanceFrozen, TheBiasIsATensorOfItsOwn) {
  run_microbatch();
  update();
  EXPECT_EQ(bias(1), std::vector<float>(kExperts, 0));
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_EQ(notes_[0].text.substr(0, 10), "Froze 2 of");
}

class OneExpert : public Balance {
 protected:
  OneExpert() : Balance(1, "full") {}
};

// With recomputation and two microbatches: one step of the bias, and then it chooses.
TEST_F(OneExpert, OneStepOfTheBiasPerUpdate) {
  forget_gates();
  run_microbatch();
  run_microbatch();
  EXPECT_EQ(counts(0), (Counts{2 * kTokens, 0, 0, 0}));
  update();
  EXPECT_FLOAT_EQ(bias(0)[0], -0.0015F);
  for (size_t e = 1; e < kExperts; ++e) EXPECT_FLOAT_EQ(bias(0)[e], 0.0005F);
  run_microbatch();
  EXPECT_EQ(counts(0), (Counts{0, kTokens, 0, 0}));
  update();
  for (size_t e = 0; e < kExperts; ++e) EXPECT_FLOAT_EQ(bias(0)[e], e < 2 ? -0.001F : 0.001F) << e;
}

}  // namespace
}  // namespace rhea::train_step
