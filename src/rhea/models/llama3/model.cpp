// The decoder of Llama 3 and the initial distributions of its weights.
#include "rhea/models/llama3/llama3.h"

namespace rhea::models::llama3 {

nn::Decoder::Config build(const DecoderSizes& sizes, const nn::RopeFields& rope) {
  DecoderSizes native = sizes;
  native.interleaved_rope = true;
  return make_decoder(native, nn::kNativeNames,
                      {.embedding = nn::Init::normal(1),
                       .head = head_init(sizes.dim),
                       .qkv = linear_init(),
                       .w1 = linear_init(),
                       .wo = depth_init,
                       .w2 = depth_init,
                       .w3 = depth_init},
                      rope);
}

}  // namespace rhea::models::llama3
