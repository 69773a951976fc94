// Llama 3: pre-norm blocks, grouped-query attention, adjacent-pair rotary embedding with llama3
// scaling.
#pragma once
#include <span>
#include <string_view>

#include "rhea/config/trainer_config.h"
#include "rhea/models/decoder_sizes.h"
#include "rhea/models/key_rules.h"

namespace rhea::models::llama3 {

// Flavors debugmodel, 1B, 3B, 8B, 70B, 405B; another name is an error that lists them.
// `attn_backend`: flex, varlen and flex_flash mask documents, sdpa is plain causal.
ModelSpec model_registry(std::string_view flavor, std::string_view attn_backend = "flex",
                         bool fuse_qkv = true);
// With converters that rewrite it: model_registry("8B", {LoRAConverter({.rank = 16})}).
ModelSpec model_registry(std::string_view flavor, Converters converters);

// The native model in sizes that a config.json gives.
nn::Decoder::Config build(const DecoderSizes& sizes, const nn::RopeFields& rope);
// Names in published files.
std::span<const KeyRule> key_rules();

}  // namespace rhea::models::llama3
