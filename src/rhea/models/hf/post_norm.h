// Blocks whose norms lie on the residual stream itself.
#pragma once
#include "rhea/nn/decoder.h"

namespace rhea::models::hf {

struct PostNormBlock {
  // h = attention_norm(x + attention(x)); ffn_norm(h + feed_forward(h))
  struct Config : nn::TransformerBlock::Config {
    nn::Value forward(nn::Trace& trace, nn::Value x_TD) const override;
  };
};

struct NormedResidualBlock {
  // a = attention_norm(x); h = a + attention(a); f = ffn_norm(h); f + feed_forward(f)
  struct Config : nn::TransformerBlock::Config {
    nn::Value forward(nn::Trace& trace, nn::Value x_TD) const override;
  };
};

// The model's blocks as blocks of type B.
template <class B>
void replace_blocks(nn::Decoder::Config& model) {
  for (auto& layer : model.layers) {
    typename B::Config made;
    static_cast<nn::TransformerBlock::Config&>(made) = *layer;
    layer = made;
  }
}

}  // namespace rhea::models::hf
