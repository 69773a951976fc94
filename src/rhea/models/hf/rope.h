// Rotary settings of a config.json, in the spelling of Transformers 4 (rope_theta, rope_scaling,
// partial_rotary_factor at the top) and 5 (rope_parameters, also one per layer type).
#pragma once
#include "rhea/models/hf/fields.h"
#include "rhea/nn/modules.h"

namespace rhea::models::hf {

// A value of RopeFields; rows choose the pairs when they put it into a block.
using Rope = nn::CosSinRoPE::Config;

// What a family's files call the settings.
struct RopeSpelling {
  std::vector<std::string_view> longrope = {};  // old names of longrope
  bool longrope_magnitudes = false;             // longrope has short_mscale and long_mscale
  std::string_view theta = "rope_theta", partial = "partial_rotary_factor";
};

// `head_dim` times partial_rotary_factor dims turn. Throws Error naming the field.
Rope read_rope(Fields& fields, int64_t head_dim, const RopeSpelling& spelling = {});

// For models whose layers differ: of the layer types "full_attention" and "sliding_attention". In
// the spelling of Transformers 4 rope_theta and the scaling apply to full attention only, and
// rope_local_base_freq, which the class defaults must have, is the theta of sliding attention.
struct LayerRopes {
  Rope full, sliding;
};
LayerRopes read_layer_ropes(Fields& fields, int64_t head_dim);

// HunYuan's files call a fixed factor of theta "dynamic": alpha^(R/(R-2)). Other settings are as
// above.
Rope read_alpha_rope(Fields& fields, int64_t head_dim);

}  // namespace rhea::models::hf
