// Runs of Qwen3 as functions: a run of your own may start from one of them.
#pragma once
#include <cstdint>
#include <string_view>

#include "rhea/config/trainer_config.h"

namespace rhea::recipes {

// Ten steps of the debug flavors on debug_text: dense, with split projections, with experts.
TrainerConfig qwen3_debugmodel();
TrainerConfig qwen3_debugmodel_non_fused_qkv();
TrainerConfig qwen3_moe_debug();

// The published sizes; 0.6B to 4B on C4, from 8B on also with full recomputation.
TrainerConfig qwen3_0_6b();
TrainerConfig qwen3_1_7b();
TrainerConfig qwen3_4b();
TrainerConfig qwen3_8b();
TrainerConfig qwen3_14b();
TrainerConfig qwen3_32b();
TrainerConfig qwen3_30b_a3b();
TrainerConfig qwen3_235b_a22b();

// The native model in the sizes of hf_assets_path/config.json.
TrainerConfig qwen3_from_config();

// The debug run on a flavor with experts that is cut to `n_layers` layers of `num_experts` experts,
// `top_k` for a token, with plain causal attention: a start for experts and rotary embeddings with
// kernels of their own. Throws Error for a flavor that is not there or has no experts.
TrainerConfig qwen3_nki_moe_config(std::string_view flavor, bool compile, int64_t n_layers,
                                   int64_t num_experts, int64_t top_k);

}  // namespace rhea::recipes
