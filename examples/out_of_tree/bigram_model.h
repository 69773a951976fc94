// A model without attention: each token predicts the next from itself alone.
//
// T tokens, D model dim, F hidden dim
#pragma once
#include "rhea/models/flavor.h"
#include "rhea/models/parts.h"
#include "rhea/nn/decoder.h"
#include "rhea/ops/ops.h"

namespace bigram {

struct Gate {
  // y = wo(silu(wg x) * wv x), in the place of attention
  struct Config : rhea::nn::Branch::Config {
    rhea::Slot<rhea::nn::Linear::Config> wg, wv, wo;

    rhea::ir::Value forward(rhea::nn::Trace& trace, rhea::ir::Value x_TD) const override {
      const rhea::ir::Value gate_TF = rhea::nn::call(trace, "wg", *wg, x_TD);
      const rhea::ir::Value value_TF = rhea::nn::call(trace, "wv", *wv, x_TD);
      return rhea::nn::call(trace, "wo", *wo, rhea::ops::swiglu(gate_TF, value_TF));
    }

    void fields(rhea::Visitor& v) override {
      v("wg", wg, "to the gate");
      v("wv", wv, "to the values");
      v("wo", wo, "back to the residual stream");
    }
  };
};

// One block of `dim` over a vocabulary.
inline rhea::ModelSpec spec(int64_t dim, int64_t vocab_size) {
  using rhea::models::linear;
  using rhea::models::rms_norm;
  const auto init = rhea::nn::Init::normal(0.02);
  const int64_t hidden_dim = 4 * dim;
  Gate::Config gate;
  gate.wg = gate.wv = linear(dim, hidden_dim, false, init);
  gate.wo = linear(hidden_dim, dim, false, init);
  rhea::nn::FeedForward::Config feed_forward;
  feed_forward.w1 = feed_forward.w3 = linear(dim, hidden_dim, false, init);
  feed_forward.w2 = linear(hidden_dim, dim, false, init);
  rhea::nn::TransformerBlock::Config block;
  block.attention_norm = block.ffn_norm = rms_norm(dim, 1e-6);
  block.attention = gate;
  block.feed_forward = feed_forward;
  rhea::nn::Decoder::Config model;
  model.tie_word_embeddings = true;
  model.tok_embeddings->num_embeddings = vocab_size;
  model.tok_embeddings->embedding_dim = dim;
  model.tok_embeddings->init = init;
  model.norm = rms_norm(dim, 1e-6);
  model.lm_head = linear(dim, vocab_size, false, init);
  model.layers.push_back(block);
  return rhea::models::make_spec("bigram", "debugmodel", model, "flex");
}

}  // namespace bigram
