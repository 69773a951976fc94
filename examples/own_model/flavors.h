// The sizes that the model comes in, and the decoder of each: Rhea's blocks with the mixer in the
// place of attention.
#pragma once
#include <array>

#include "model.h"
#include "rhea/models/flavor.h"
#include "rhea/models/parts.h"

namespace token_shift {

struct Flavor {
  std::string_view name;
  int64_t dim, n_layers, hidden_dim, vocab_size;
};

inline constexpr std::array kFlavors = {
    Flavor{"debugmodel", 64, 2, 160, 2048},
    Flavor{"30M", 512, 8, 1408, 32000},
};

inline rhea::nn::Decoder::Config build(const Flavor& flavor) {
  using rhea::models::linear;
  using rhea::models::rms_norm;
  constexpr double kEps = 1e-6;
  const auto init = rhea::nn::Init::normal(0.02);
  rhea::nn::Decoder::Config model;
  model.tie_word_embeddings = true;
  model.tok_embeddings->num_embeddings = flavor.vocab_size;
  model.tok_embeddings->embedding_dim = flavor.dim;
  model.tok_embeddings->init = init;
  model.norm = rms_norm(flavor.dim, kEps);
  model.lm_head = linear(flavor.dim, flavor.vocab_size, false, init);
  for (int64_t layer = 0; layer < flavor.n_layers; ++layer) {
    ShiftMixer::Config mixer;
    mixer.wg = mixer.wv = mixer.wo = linear(flavor.dim, flavor.dim, false, init);
    rhea::nn::FeedForward::Config feed_forward;
    feed_forward.w1 = feed_forward.w3 = linear(flavor.dim, flavor.hidden_dim, false, init);
    feed_forward.w2 = linear(flavor.hidden_dim, flavor.dim, false, init);
    rhea::nn::TransformerBlock::Config block;
    block.attention_norm = rms_norm(flavor.dim, kEps);
    block.attention = mixer;
    block.ffn_norm = rms_norm(flavor.dim, kEps);
    block.feed_forward = feed_forward;
    model.layers.push_back(block);
  }
  return model;
}

// Throws rhea::Error that lists the flavors there are.
inline rhea::ModelSpec model_registry(std::string_view flavor) {
  const Flavor& found = rhea::models::find_flavor("token_shift", kFlavors, flavor);
  return rhea::models::make_spec("token_shift", flavor, build(found), "flex");
}

}  // namespace token_shift
