// Runs of published model folders as functions: a run of your own may start from one of them.
#pragma once
#include "rhea/config/trainer_config.h"

namespace rhea::recipes {

// The model of hf_model or hf_assets_path.
TrainerConfig transformers_modeling_backend_full();
TrainerConfig transformers_modeling_backend_full_moe();
// The first one frozen, with LoRA at its attention.
TrainerConfig transformers_modeling_backend_lora();
// The first two in debug sizes, by default of a Qwen3 of this tree.
TrainerConfig transformers_modeling_backend_debugmodel();
TrainerConfig transformers_modeling_backend_debugmodel_moe();

}  // namespace rhea::recipes
