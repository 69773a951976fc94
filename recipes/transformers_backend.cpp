// Runs of published model folders, structure from config.json.
#include "recipes/transformers_backend.h"

#include "recipes/recipes.h"
#include "rhea/models/converters/lora.h"
#include "rhea/models/registry.h"

namespace rhea::recipes {
namespace {

constexpr const char* kDebugFolder = "./tests/assets/qwen3_debugmodel";
constexpr const char* kMoeDebugFolder = "./tests/assets/qwen3_moe_debugmodel";

// Any published config in debug sizes; by default one of the tree, so that no other file is needed.
TrainerConfig debug_run(const char* folder) {
  TrainerConfig c = transformers_modeling_backend_full();
  c.hf_model = folder;
  c.metrics->log_freq = 1;
  c.validator->dataloader->dataset = "debug_text_validation";
  return c;
}

}  // namespace

TrainerConfig transformers_modeling_backend_full() {
  TrainerConfig c;
  c.model_spec = models::deferred_spec("transformers_modeling_backend");
  c.optimizer = default_adamw(8e-4);
  c.lr_scheduler->warmup_steps = 2;
  c.lr_scheduler->decay_ratio = 0.8;
  c.training.local_batch_size = 2;
  c.training.seq_len = 2048;
  c.training.steps = 10;
  c.checkpoint->interval = 10;
  c.checkpoint->last_save_model_only = false;
  c.loss = CrossEntropyLossConfig{};
  c.debug.print_config = true;
  return c;
}

TrainerConfig transformers_modeling_backend_full_moe() {
  TrainerConfig c = transformers_modeling_backend_full();
  c.lr_scheduler->warmup_steps = 200;
  c.training.steps = 1000;
  return c;
}

// Adapters at the projections of attention; everything else keeps its published values.
TrainerConfig transformers_modeling_backend_lora() {
  TrainerConfig c = transformers_modeling_backend_full();
  c.model_spec.converters = {LoRAConverter({.rank = 8, .alpha = 16, .target_modules = {"*att*"}})};
  c.checkpoint->last_save_model_only = true;
  c.checkpoint->last_save_in_hf = true;
  return c;
}

TrainerConfig transformers_modeling_backend_debugmodel() {
  TrainerConfig c = debug_run(kDebugFolder);
  c.hf_overrides.dim = 256;
  c.hf_overrides.n_layers = 2;
  c.hf_overrides.n_heads = 16;
  c.hf_overrides.n_kv_heads = 16;
  return c;
}

TrainerConfig transformers_modeling_backend_debugmodel_moe() {
  TrainerConfig c = debug_run(kMoeDebugFolder);
  c.hf_overrides.dim = 2048;
  c.hf_overrides.n_layers = 4;
  c.hf_overrides.n_heads = 16;
  c.hf_overrides.n_kv_heads = 8;
  c.hf_overrides.intermediate_size = 512;
  c.hf_overrides.num_experts = 8;
  c.hf_overrides.num_experts_per_tok = 2;
  c.hf_overrides.moe_intermediate_size = 128;
  return c;
}

void register_transformers_backend(config::ConfigRegistry& registry) {
  constexpr const char* kModule = "transformers_modeling_backend";
  registry.add(kModule, "transformers_modeling_backend_full", transformers_modeling_backend_full,
               "the model of hf_model or hf_assets_path");
  registry.add(kModule, "transformers_modeling_backend_debugmodel",
               transformers_modeling_backend_debugmodel,
               "the same cut to 2 layers of width 256; by default a Qwen3 of this tree");
  registry.add(kModule, "transformers_modeling_backend_full_moe",
               transformers_modeling_backend_full_moe,
               "a published mixture of experts, longer warm-up");
  registry.add(kModule, "transformers_modeling_backend_debugmodel_moe",
               transformers_modeling_backend_debugmodel_moe,
               "the same cut to 4 layers of 8 experts; by default a Qwen3 of this tree");
  registry.add(kModule, "transformers_modeling_backend_lora", transformers_modeling_backend_lora,
               "the model of hf_model or hf_assets_path, frozen, with LoRA at its attention");
  registry.add_alias("hf", kModule);
}

}  // namespace rhea::recipes
