// Qwen3: pre-norm blocks, grouped-query attention with normalised query and key heads, half-split
// rotary embedding; dense, or with experts in the place of every feed-forward.
#pragma once
#include <span>
#include <string_view>

#include "rhea/config/trainer_config.h"
#include "rhea/models/decoder_sizes.h"
#include "rhea/models/key_rules.h"

namespace rhea::models::qwen3 {

// Flavors debugmodel, debugmodel_non_fused_qkv, 0.6B, 1.7B, 4B, 8B, 14B, 32B, and with experts
// debugmodel_moe, 30B-A3B, 235B-A22B; another name is an error that lists them. `attn_backend`:
// flex, varlen and flex_flash mask documents, sdpa is plain causal. `moe_comm_backend`: standard;
// deepep, hybridep and minimal_async_ep are names for runs whose experts lie on several ranks, and
// an error here.
ModelSpec model_registry(std::string_view flavor, std::string_view attn_backend = "flex",
                         bool fuse_qkv = true, std::string_view moe_comm_backend = "standard");
// With converters that rewrite it: model_registry("8B", {LoRAConverter({.rank = 16})}).
ModelSpec model_registry(std::string_view flavor, Converters converters);

// A flavor in parts, for a model that has others: change them, then build.
DecoderSizes flavor_sizes(std::string_view flavor);
nn::CosSinRoPE::Config flavor_rope(std::string_view flavor);
// The native model in any sizes.
nn::Decoder::Config build(const DecoderSizes& sizes, const nn::RopeFields& rope);
// The same as a run's model: `flavor` is the name that logs and checkpoints have for it.
ModelSpec make_spec(std::string_view flavor, const DecoderSizes& sizes, const nn::RopeFields& rope,
                    std::string_view attn_backend = "flex");
// Names in published files.
std::span<const KeyRule> key_rules();

}  // namespace rhea::models::qwen3
