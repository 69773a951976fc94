// Qwen3 (dense): pre-norm blocks, grouped-query attention with normalised query and key heads,
// half-split rotary embedding.
#pragma once
#include <span>
#include <string_view>

#include "rhea/config/trainer_config.h"
#include "rhea/models/decoder_sizes.h"
#include "rhea/models/key_rules.h"

namespace rhea::models::qwen3 {

// Flavors debugmodel, debugmodel_non_fused_qkv, 0.6B, 1.7B, 4B, 8B, 14B, 32B; another name is an
// error that lists them. `attn_backend`: flex, varlen and flex_flash mask documents, sdpa is plain
// causal.
ModelSpec model_registry(std::string_view flavor, std::string_view attn_backend = "flex",
                         bool fuse_qkv = true);

// The native model in sizes that a config.json gives.
nn::Decoder::Config build(const DecoderSizes& sizes, const nn::RopeFields& rope);
std::span<const KeyRule> key_rules();

}  // namespace rhea::models::qwen3
