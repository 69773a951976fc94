// What the rows of mixtures of experts share.
#pragma once
#include <functional>

#include "rhea/models/hf/build.h"
#include "rhea/nn/moe.h"

namespace rhea::models::hf {

// A mixture in the place of a layer's feed-forward. Sizes of the model come from the decoder.
struct Mixture {
  nn::Router::Config router;
  int64_t hidden_dim = 0;  // of an expert
  std::string activation = "silu";
  const nn::MoeNames* names = &nn::kHuggingFaceMoeNames;
  // The experts of a layer as one tensor in the files (nn::JoinedExperts); else one matrix each.
  const nn::JoinedExperts::Config* joined = nullptr;
  int64_t shared_dim = 0;  // hidden dim of the shared feed-forward, 0 = none
  bool shared_bias = false, shared_gate = false;
};

// num_experts under the row's names.
int64_t read_experts(Fields& fields);
// Experts of a token, likewise; an Error where there are more than experts.
int64_t read_top_k(Fields& fields, int64_t num_experts);
// Losses of routers are not trained: a warning where the file asks for one. Fields of old files
// about where experts lie have no effect.
void read_router_losses(Fields& fields);
// The router of DeepSeek-V3, which GLM-4.5 and dots.llm1 have too: sigmoid, correction bias,
// n_group, topk_group, norm_topk_prob, routed_scaling_factor.
nn::Router::Config read_sigmoid_router(Fields& fields, int64_t num_experts);

// Replaces the feed-forward of the layers for which `sparse` is true.
void set_mixtures(nn::Decoder::Config& model, const Mixture& mixture,
                  const std::function<bool(int64_t layer)>& sparse);

}  // namespace rhea::models::hf
