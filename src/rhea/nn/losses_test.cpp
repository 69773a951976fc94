// Losses of a user's file: traced, chosen by a word, refused where they cannot be.
#include "rhea/nn/losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "rhea/config/option_index.h"
#include "rhea/config/trainer_config.h"
#include "rhea/ops/ops.h"
#include "tests/support/error_of.h"

namespace rhea::nn {
namespace {

using support::error_of;
using testing::HasSubstr;

// Cross entropy plus z_weight times the squares of the log of the denominators.
struct ZLoss : LossConfig {
  double z_weight = 1e-4;
  void fields(Visitor& v) override { v("z_weight", z_weight, "weight of the squares"); }
};

Value trace_z_loss(const LossInputs& in, const ZLoss& config) {
  const Value logits_TV = in.logits();
  const Value z_T = ops::logsumexp(logits_TV);
  const Value squares = ops::reduce_sum(ops::multiply(z_T, z_T), {0});
  return ops::cross_entropy(logits_TV, in.labels_T, in.scale) +
         ops::multiply(ops::multiply(squares, in.scale), config.z_weight);
}

void add_z_loss() {
  if (losses().find("ZLoss") == nullptr) add_loss<ZLoss>("ZLoss", trace_z_loss, "z.cpp");
}

Decoder::Config model() {
  Decoder::Config made;
  Embedding::Config embedding;
  embedding.num_embeddings = 12;
  embedding.embedding_dim = 4;
  made.tok_embeddings = embedding;
  Linear::Config head;
  head.in_features = 4;
  head.out_features = 12;
  made.lm_head = head;
  return made;
}

ir::Graph traced(const LossConfig& config, const Decoder::Config& of = model()) {
  ir::Graph graph;
  Trace trace(graph, {.num_tokens = 8, .seq_len = 8});
  graph.output("loss", traced_loss(trace, of, config));
  return graph;
}

size_t count(const ir::Graph& graph, const ir::OpDef& op) {
  return static_cast<size_t>(
      std::ranges::count_if(graph.nodes(), [&](const ir::Node& node) { return node.op == &op; }));
}

TEST(Losses, TheInTreeOnesAreRowsOfTheTable) {
  const ir::Graph whole = traced(CrossEntropyLossConfig());
  EXPECT_EQ(count(whole, ops::kCrossEntropy), 1U);
  const ir::Graph chunked = traced(ChunkedLossConfig());
  EXPECT_EQ(count(chunked, ops::kLinearCrossEntropy), 1U);
  EXPECT_EQ(count(chunked, ops::kCrossEntropy), 0U);
}

// Phi's and GPT-J's heads have a bias, Gemma's a cap: neither brings whole logits back.
TEST(Losses, ChunksTakeTheBiasAndTheCapOfAHead) {
  Decoder::Config head = model();
  head.logit_softcap = 30;
  Linear::Config with_bias = *head.lm_head;
  with_bias.bias = true;
  head.lm_head = with_bias;
  const ir::Graph graph = traced(ChunkedLossConfig(), head);
  EXPECT_EQ(count(graph, ops::kCrossEntropy), 0U);
  EXPECT_EQ(count(graph, ops::kTanh), 0U);
  const auto loss = std::ranges::find_if(
      graph.nodes(), [](const ir::Node& node) { return node.op == &ops::kLinearCrossEntropy; });
  ASSERT_NE(loss, graph.nodes().end());
  EXPECT_EQ(loss->attrs.f64("cap"), 30);
  ASSERT_EQ(loss->inputs.size(), 5U);
  EXPECT_EQ(graph.type(loss->inputs[4]), (ir::Type{DType::f32, {12}}));
}

TEST(Losses, OneOfAUsersFileIsTracedWithItsFields) {
  add_z_loss();
  ZLoss config;
  config.z_weight = 0.25;
  const ir::Graph graph = traced(config);
  EXPECT_EQ(count(graph, ops::kLogSumExp), 1U);
  EXPECT_EQ(graph.type(graph.find_output("loss")->value), (ir::Type{DType::f32, {}}));
  bool has_weight = false;
  for (const ir::Node& node : graph.nodes())
    has_weight |= node.op == &ir::kConstant && node.attrs.f64("value") == 0.25;
  EXPECT_TRUE(has_weight);
}

TEST(Losses, AWordChoosesItAndItsFieldsAreOptions) {
  add_z_loss();
  TrainerConfig config;
  const config::OptionIndex before(config);
  const auto* slot = before.find("loss");
  ASSERT_NE(slot, nullptr);
  const auto& words = slot->info.alternatives;
  ASSERT_EQ(words.back().name, "ZLoss");
  words.back().select(config.loss);
  ASSERT_NE(config.loss.as<ZLoss>(), nullptr);
  EXPECT_NE(config::OptionIndex(config).find("loss.z_weight"), nullptr);
}

TEST(Losses, WhatCannotBeTracedIsNamed) {
  struct Unknown : LossConfig {
    void fields(Visitor&) override {}
  };
  EXPECT_THAT(error_of([] { traced(Unknown()); }),
              testing::AllOf(HasSubstr("nothing says how a"), HasSubstr("Unknown"),
                             HasSubstr("known: CrossEntropyLoss, ChunkedLossWrapper")));
  add_z_loss();
  ChunkedLossConfig chunked;
  chunked.loss_fn = ZLoss();
  EXPECT_THAT(error_of([&] { traced(chunked); }),
              testing::AllOf(HasSubstr("loss.loss_fn is a"), HasSubstr("ZLoss"),
                             HasSubstr("cross entropy only")));
  struct Wide : LossConfig {
    void fields(Visitor&) override {}
  };
  add_loss<Wide>(
      "Wide", [](const LossInputs& in, const Wide&) { return in.logits(); }, "wide.cpp");
  EXPECT_THAT(error_of([] { traced(Wide()); }),
              HasSubstr("loss Wide traced f32[8,12], expected an f32 scalar"));
  struct Nothing : LossConfig {
    void fields(Visitor&) override {}
  };
  add_loss<Nothing>(
      "Nothing", [](const LossInputs&, const Nothing&) { return Value(); }, "nothing.cpp");
  EXPECT_THAT(error_of([] { traced(Nothing()); }),
              HasSubstr("loss Nothing traced nothing, expected an f32 scalar"));
  EXPECT_EQ(error_of([] { add_loss<ZLoss>("ZLoss", trace_z_loss, "wide.cpp"); }),
            "loss 'ZLoss' is already registered by z.cpp; wide.cpp must take another name");
}

}  // namespace
}  // namespace rhea::nn
