// Runs of Llama 3, to start from: take one, change what differs.
#pragma once
#include "rhea/config/trainer_config.h"

namespace rhea::recipes {

// 6M parameters on debug_text, 10 steps.
TrainerConfig llama3_debugmodel();

// The same model frozen, with adapters at every linear layer.
TrainerConfig llama3_debugmodel_lora();
// Products of all linear layers but the head's in float8, emulated.
TrainerConfig llama3_debugmodel_float8();

// The published sizes on C4; 70B and above with tensor parallelism of 8 and full recomputation.
TrainerConfig llama3_1b();
TrainerConfig llama3_3b();
TrainerConfig llama3_8b();
TrainerConfig llama3_70b();
TrainerConfig llama3_405b();

// The native model in the sizes of hf_assets_path/config.json.
TrainerConfig llama3_from_config();

}  // namespace rhea::recipes
