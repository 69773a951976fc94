// The decoder of Qwen3 and the initial distributions of its weights.
#include "rhea/models/qwen3/qwen3.h"

namespace rhea::models::qwen3 {

nn::Decoder::Config build(const DecoderSizes& sizes, const nn::RopeFields& rope) {
  DecoderSizes native = sizes;
  native.qk_norm = true;
  const nn::Init rule = nn::Init::normal(0.02);
  const auto every_layer = [rule](int64_t) { return rule; };
  return make_decoder(native, nn::kNativeNames,
                      {.embedding = rule,
                       .head = rule,
                       .qkv = rule,
                       .w1 = rule,
                       .wo = every_layer,
                       .w2 = every_layer,
                       .w3 = every_layer},
                      rope);
}

}  // namespace rhea::models::qwen3
