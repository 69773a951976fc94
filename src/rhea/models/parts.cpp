#include "rhea/models/parts.h"

#include "rhea/base/error.h"

namespace rhea::models {

nn::Linear::Config linear(int64_t in, int64_t out, bool bias, const nn::Init& init) {
  nn::Linear::Config made;
  made.in_features = in;
  made.out_features = out;
  made.bias = bias;
  made.init = init;
  return made;
}

nn::RMSNorm::Config rms_norm(int64_t dim, double eps, double offset) {
  nn::RMSNorm::Config made;
  made.dim = dim;
  made.eps = eps;
  made.offset = offset;
  return made;
}

nn::LayerNorm::Config layer_norm(int64_t dim, double eps, bool weight, bool bias, double offset) {
  nn::LayerNorm::Config made;
  made.dim = dim;
  made.eps = eps;
  made.weight = weight;
  made.bias = bias;
  made.offset = offset;
  return made;
}

Slot<nn::RoPE::Config> rotary(const nn::RopeFields& rope, bool interleaved) {
  const auto filled = [&](auto made) -> Slot<nn::RoPE::Config> {
    static_cast<nn::RopeFields&>(made) = rope;
    return made;
  };
  return interleaved ? filled(nn::ComplexRoPE::Config()) : filled(nn::CosSinRoPE::Config());
}

nn::Attention::Config& attention_of(nn::TransformerBlock::Config& block) {
  auto* attention = block.attention.as<nn::Attention::Config>();
  if (attention == nullptr)
    throw Error("the block's attention is {}, expected nn::Attention",
                block.attention ? type_name(*block.attention) : "absent");
  return *attention;
}

const nn::Attention::Config& attention_of(const nn::TransformerBlock::Config& block) {
  return attention_of(const_cast<nn::TransformerBlock::Config&>(block));
}

}  // namespace rhea::models
