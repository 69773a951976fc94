// Frozen parameters: no gradient, no state, no change, and the others train as if nothing was
// frozen below them.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "rhea/base/error.h"
#include "rhea/components/train_step/test_training.h"
#include "rhea/models/converters/freeze.h"
#include "rhea/models/model_size.h"

namespace rhea::train_step {
namespace {

nn::Decoder::Config frozen(nn::Decoder::Config model, const FreezeOptions& options,
                           std::vector<ConversionNote>* notes = nullptr) {
  Slot<Config> slot = model;
  std::vector<ConversionNote> own;
  FreezeConverter(options).convert(slot, notes != nullptr ? *notes : own);
  return *slot.as<nn::Decoder::Config>();
}

class Frozen : public testing::TestWithParam<DType> {};

TEST_P(Frozen, ParametersKeepTheirBitsAndTheOthersGetTheSameGradients) {
  const Trained all = train(small_model(), small_options(GetParam()));
  const Trained some =
      train(frozen(small_model(), {.fqns = {"layers.0.*", "tok_embeddings.*", "*norm*"}}),
            small_options(GetParam()));
  EXPECT_EQ(some.start, all.start);
  EXPECT_EQ(some.losses[0], all.losses[0]);
  EXPECT_EQ(some.losses[1], all.losses[1]);
  EXPECT_LT(some.losses[2], some.losses[0]);
  double squares = 0;
  size_t trained = 0;
  for (const auto& [name, bytes] : some.start) {
    const bool is_frozen = name.starts_with("layers.0.") || name.starts_with("tok_embeddings.") ||
                           name.find("norm") != std::string::npos;
    const bool has_gradient = some.gradients.contains("grad." + name);
    EXPECT_EQ(has_gradient, !is_frozen) << name;
    EXPECT_EQ(some.end.at(name) == bytes, is_frozen) << name;
    EXPECT_EQ(some.state.contains("exp_avg." + name), !is_frozen) << name;
    if (!has_gradient) continue;
    ++trained;
    EXPECT_TRUE(some.gradients.at("grad." + name) == all.gradients.at("grad." + name)) << name;
    for (const float value : as_floats(some.gradients.at("grad." + name)))
      squares += static_cast<double>(value) * static_cast<double>(value);
  }
  EXPECT_GT(trained, 3U);
  EXPECT_EQ(some.gradients.size(), trained);
  EXPECT_NEAR(some.norm, std::sqrt(squares), 1e-5 * some.norm);
  EXPECT_LT(some.norm, all.norm);
  EXPECT_EQ(some.memory.parameters, all.memory.parameters);
  EXPECT_LT(some.memory.gradients, all.memory.gradients);
  EXPECT_LT(some.memory.optimizer, all.memory.optimizer);
}

INSTANTIATE_TEST_SUITE_P(, Frozen, testing::Values(DType::f32, DType::bf16));

TEST(FreezeConverter, OneOfThreeFusedProjections) {
  const auto model = frozen(small_model(), {.fqns = {"*.wk.weight", "*.wv.weight"}});
  const Trained some = train(model, small_options());
  const std::string qkv = "layers.1.attention.qkv_linear.";
  EXPECT_TRUE(some.gradients.contains("grad." + qkv + "wq.weight"));
  EXPECT_FALSE(some.gradients.contains("grad." + qkv + "wk.weight"));
  EXPECT_EQ(some.end.at(qkv + "wk.weight"), some.start.at(qkv + "wk.weight"));
  EXPECT_NE(some.end.at(qkv + "wq.weight"), some.start.at(qkv + "wq.weight"));
}

TEST(FreezeConverter, SaysWhatItDid) {
  std::vector<ConversionNote> notes;
  frozen(small_model(), {.fqns = {"layers.*", "layer.9.*"}, .except = {"*norm.weight"}}, &notes);
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_TRUE(notes[0].is_warning);
  EXPECT_EQ(notes[0].text,
            "FreezeConverter fqns 'layer.9.*' matches no parameter; the model has parameters such "
            "as tok_embeddings.weight");
  EXPECT_FALSE(notes[1].is_warning);
  EXPECT_EQ(notes[1].text,
            "Froze 14 of 25 parameter tensors; 8 stay trainable: layers.0.attention_norm.weight, "
            "layers.0.attention.q_norm.weight, layers.0.attention.k_norm.weight, "
            "layers.0.ffn_norm.weight, layers.1.attention_norm.weight, "
            "layers.1.attention.q_norm.weight, layers.1.attention.k_norm.weight, "
            "layers.1.ffn_norm.weight");
}

TEST(FreezeConverter, RefusesToFreezeNothingAndEverything) {
  EXPECT_THROW(frozen(small_model(), {.fqns = {"nothing.*"}}), Error);
  EXPECT_THROW(frozen(small_model(), {.fqns = {"layers.*"}, .except = {"*"}}), Error);
  const auto model = frozen(small_model(), {.fqns = {"*"}});
  try {
    build_step_graphs(model, small_options());
    ADD_FAILURE() << "a model without trained parameters was built";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("nothing to train"), std::string::npos);
  }
}

TEST(ModelSize, CountsWhatIsTrained) {
  const auto size = [](const nn::Decoder::Config& model) {
    return models::model_size(model, build_step_graphs(model, small_options()).all_parameters(),
                              kSmallSeqLen);
  };
  const auto all = size(small_model());
  EXPECT_EQ(all.num_trainable, all.num_parameters);
  // The table is in no product, the head is.
  const auto table = size(frozen(small_model(), {.fqns = {"tok_embeddings.weight"}}));
  EXPECT_EQ(table.num_trainable, all.num_parameters - kSmallVocab * 32);
  EXPECT_EQ(table.flops_per_token, all.flops_per_token);
  const auto head = size(frozen(small_model(), {.fqns = {"lm_head.weight"}}));
  EXPECT_EQ(head.flops_per_token, all.flops_per_token - 2 * kSmallVocab * 32);
}

}  // namespace
}  // namespace rhea::train_step
