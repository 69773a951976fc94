// The decoder of Qwen3 and the initial distributions of its weights.
#include <cmath>

#include "rhea/models/qwen3/qwen3.h"

namespace rhea::models::qwen3 {
namespace {

constexpr nn::DecoderNames moe_names() {
  nn::DecoderNames names = nn::kNativeNames;
  names.feed_forward = "moe";
  return names;
}
constexpr nn::DecoderNames kMoeNames = moe_names();

}  // namespace

nn::Decoder::Config build(const DecoderSizes& sizes, const nn::RopeFields& rope) {
  DecoderSizes native = sizes;
  native.qk_norm = true;
  const bool sparse = native.experts.num_experts > 0;
  const nn::Init rule = nn::Init::normal(0.02);
  // What writes into the residual stream, in models with experts.
  const nn::Init deep = nn::Init::normal(0.02 / std::sqrt(2 * static_cast<double>(sizes.n_layers)));
  const auto every_layer = [rule](int64_t) { return rule; };
  auto model = make_decoder(native, nn::kNativeNames,
                            {.embedding = rule,
                             .head = rule,
                             .qkv = rule,
                             .w1 = rule,
                             .wo = [&](int64_t) { return sparse ? deep : rule; },
                             .w2 = every_layer,
                             .w3 = every_layer},
                            rope);
  if (!sparse) return model;
  for (auto& block : model.layers) {
    block->names = &kMoeNames;
    block->feed_forward = make_mixture(native, nn::kNativeMoeNames, rule, deep, rule);
  }
  return model;
}

}  // namespace rhea::models::qwen3
