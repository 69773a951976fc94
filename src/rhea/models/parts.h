// Module configs in one expression: what builders of models are written with.
//
// D model dim, F hidden dim, N query heads, K kv heads, H head dim
#pragma once
#include "rhea/nn/decoder.h"

namespace rhea::models {

// A layer [in] -> [out] whose weight starts as `init`.
nn::Linear::Config linear(int64_t in, int64_t out, bool bias, const nn::Init& init);
// Norms over the last dim; `offset` is added to the weight.
nn::RMSNorm::Config rms_norm(int64_t dim, double eps, double offset = 0);
nn::LayerNorm::Config layer_norm(int64_t dim, double eps, bool weight = true, bool bias = true,
                                 double offset = 0);
// `rope` as pairs (2i, 2i+1) or (i, i + R/2).
Slot<nn::RoPE::Config> rotary(const nn::RopeFields& rope, bool interleaved);

// Attention, feed-forward and q/k projections of a block, where they are of that kind; otherwise an
// Error that names the kind that is there.
nn::Attention::Config& attention_of(nn::TransformerBlock::Config& block);
const nn::Attention::Config& attention_of(const nn::TransformerBlock::Config& block);

}  // namespace rhea::models
