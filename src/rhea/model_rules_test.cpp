// Sizes and parts that no model can have: problems with their paths, before anything is traced.
#include "rhea/model_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "rhea/base/error.h"
#include "rhea/complete_model.h"
#include "rhea/config/validate.h"
#include "rhea/models/flavor.h"
#include "rhea/models/parts.h"
#include "rhea/models/qwen3/qwen3.h"
#include "rhea/nn/moe.h"

namespace rhea {
namespace {

using models::DecoderSizes;
using testing::HasSubstr;

// All problems of a run of the debug model, one with experts where `flavor` says so.
std::string problems(const std::string& flavor, const std::function<void(TrainerConfig&)>& change) {
  TrainerConfig config;
  config.training.seq_len = 64;
  config.model_spec = models::qwen3::model_registry(flavor);
  change(config);
  config::WorldFacts world{.reads_files = false};
  world.model = complete_model(config, {.reads_files = false});
  return config::validate(config, world).text();
}

nn::Decoder::Config& model(TrainerConfig& config) {
  return *config.model_spec.model.as<nn::Decoder::Config>();
}
nn::Attention::Config& attention(TrainerConfig& config) {
  return models::attention_of(*model(config).layers[1]);
}
nn::MoE::Config& mixture(TrainerConfig& config) {
  return *model(config).layers[1]->feed_forward.as<nn::MoE::Config>();
}

TEST(ModelRules, ARightModelHasNoProblem) {
  EXPECT_THAT(problems("debugmodel", [](TrainerConfig&) {}), HasSubstr("0 problems"));
}

TEST(ModelRules, SizesAndPartsThatNoModelHasAreNamed) {
  struct Mistake {
    const char* flavor;
    std::function<void(TrainerConfig&)> change;
    const char* said;
  };
  constexpr const char* kDense = "debugmodel";
  constexpr const char* kSparse = "debugmodel_moe";
  const Mistake mistakes[] = {
      {kDense, [](auto& c) { c.loss = {}; }, "loss: is empty"},
      {kDense, [](auto& c) { c.loss.template as<ChunkedLossConfig>()->loss_fn = {}; },
       "loss.loss_fn: is empty"},
      {kDense, [](auto& c) { c.model_spec.name = ""; },
       "model_spec.name = '': expected one of: llama3, qwen3"},
      {kDense, [](auto& c) { c.model_spec = {}; }, "model_spec.model: is no decoder"},
      {kDense, [](auto& c) { model(c).layers.clear(); }, "model_spec.model.layers: is empty"},
      {kDense, [](auto& c) { model(c).tok_embeddings->num_embeddings = 0; },
       "model_spec.model.tok_embeddings.num_embeddings = 0: must be at least 1"},
      {kDense, [](auto& c) { model(c).tok_embeddings->embedding_dim = 0; },
       "model_spec.model.tok_embeddings.embedding_dim = 0: must be at least 1"},
      {kDense, [](auto& c) { attention(c).qkv_linear->n_heads = 0; },
       "model_spec.model.layers.1.attention.qkv_linear.n_heads = 0: must be at least 1"},
      {kDense, [](auto& c) { attention(c).qkv_linear->n_kv_heads = 3; },
       "model_spec.model.layers.1.attention.qkv_linear.n_heads = 16: must be a multiple of "
       "n_kv_heads, which is 3"},
      {kDense, [](auto& c) { attention(c).qkv_linear->head_dim = 0; }, ".head_dim = 0: must be at"},
      {kDense, [](auto& c) { attention(c).wo->in_features = 0; },
       ".wo.in_features = 0: must be at"},
      {kDense, [](auto& c) { attention(c).qkv_linear = {}; },
       "model_spec.model.layers.1.attention.qkv_linear: is empty"},
      {kDense, [](auto& c) { model(c).layers[1]->attention = {}; },
       "model_spec.model.layers.1.attention: is empty"},
      {kDense, [](auto& c) { model(c).layers[1]->feed_forward = {}; },
       "model_spec.model.layers.1.feed_forward: is empty"},
      {kDense, [](auto& c) { model(c).norm->dim = -1; }, "norm.dim = -1: must be at least 1"},
      {kSparse, [](auto& c) { mixture(c).router->top_k = 65; },
       "model_spec.model.layers.1.moe.router.top_k = 65: must be at most num_experts, which is 64"},
      {kSparse, [](auto& c) { mixture(c).router->num_experts = 0; },
       "router.num_experts = 0: must be at least 1"},
      {kSparse, [](auto& c) { mixture(c).router->top_groups = 2; },
       "router.top_groups = 2: must be at most num_groups, which is 1"},
      {kSparse, [](auto& c) { mixture(c).routed_experts->inner_experts = {}; },
       "model_spec.model.layers.1.moe.routed_experts.inner_experts: is empty"},
  };
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(mistake.said);
    EXPECT_THAT(problems(mistake.flavor, mistake.change), HasSubstr(mistake.said));
  }
}

TEST(ModelRules, SizesThatABuilderCannotUseAreNamed) {
  struct Mistake {
    const char* flavor;
    void (*change)(DecoderSizes& sizes);
    const char* said;
  };
  const Mistake mistakes[] = {
      {"4B", [](auto& s) { s.dim = 0; }, "dim is 0, expected at least 1"},
      {"4B", [](auto& s) { s.n_layers = 0; }, "n_layers is 0, expected at least 1"},
      {"4B", [](auto& s) { s.n_heads = 0, s.head_dim = 0; }, "n_heads is 0, expected at least 1"},
      {"4B", [](auto& s) { s.n_kv_heads = 0; }, "n_kv_heads is 0, expected at least 1"},
      {"4B", [](auto& s) { s.n_kv_heads = 5; },
       "n_heads (32) must be a multiple of n_kv_heads (5)"},
      {"4B", [](auto& s) { s.head_dim = -1; }, "head_dim is -1, expected at least 0"},
      {"4B", [](auto& s) { s.hidden_dim = 0; }, "hidden_dim is 0, expected at least 1"},
      {"4B", [](auto& s) { s.vocab_size = 0; }, "vocab_size is 0, expected at least 1"},
      {"30B-A3B", [](auto& s) { s.experts.num_experts = 4; },
       "experts.top_k (8) must be at most experts.num_experts (4)"},
      {"30B-A3B", [](auto& s) { s.experts.num_experts = 0; },
       "experts.num_experts is 0, but experts.top_k is 8"},
      {"30B-A3B", [](auto& s) { s.experts.num_experts = -1; }, "experts.num_experts is -1"},
      {"30B-A3B", [](auto& s) { s.experts.top_k = 0; }, "experts.top_k is 0, expected at least 1"},
  };
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(mistake.said);
    DecoderSizes sizes = models::qwen3::flavor_sizes(mistake.flavor);
    mistake.change(sizes);
    try {
      models::qwen3::build(sizes, models::qwen3::flavor_rope(mistake.flavor));
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(mistake.said));
    }
  }
}

}  // namespace
}  // namespace rhea
