// What a family calls the parts of a decoder.
#pragma once
#include <string_view>

namespace rhea::nn {

// FQNs of parameters and of config nodes are made of these.
struct DecoderNames {
  std::string_view prefix;  // before everything but the head: "" or "model"
  std::string_view tok_embeddings, attention_norm, attention, ffn_norm, feed_forward, norm, lm_head;
  std::string_view qkv;  // scope of the three projections, "" = the attention's own
  std::string_view wq, wk, wv, wo, q_norm, k_norm;
  std::string_view w1, w2, w3;
};
extern const DecoderNames kNativeNames;       // torchtitan's
extern const DecoderNames kHuggingFaceNames;  // of published Llama and Qwen3 files

}  // namespace rhea::nn
