// Runs of published model folders, structure from config.json.
#include "recipes/recipes.h"
#include "rhea/models/registry.h"

namespace rhea::recipes {
namespace {

TrainerConfig full() {
  TrainerConfig c;
  c.model_spec = models::deferred_spec("transformers_modeling_backend");
  c.optimizer = default_adamw(8e-4);
  c.lr_scheduler.warmup_steps = 2;
  c.lr_scheduler.decay_ratio = 0.8;
  c.training.local_batch_size = 2;
  c.training.seq_len = 2048;
  c.training.steps = 10;
  c.checkpoint.interval = 10;
  c.checkpoint.last_save_model_only = false;
  c.loss = CrossEntropyLossConfig{};
  c.debug.print_config = true;
  return c;
}

}  // namespace

void register_transformers_backend(config::ConfigRegistry& registry) {
  constexpr const char* kModule = "transformers_modeling_backend";
  registry.add(kModule, "transformers_modeling_backend_full", full,
               "the model of hf_model or hf_assets_path (llama, qwen3)");
  registry.add_alias("hf", kModule);
}

}  // namespace rhea::recipes
