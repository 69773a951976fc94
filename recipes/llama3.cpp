// Runs of Llama 3.
#include "recipes/llama3.h"

#include "recipes/recipes.h"
#include "rhea/models/converters/float8.h"
#include "rhea/models/converters/lora.h"
#include "rhea/models/llama3/llama3.h"
#include "rhea/models/registry.h"

namespace rhea::recipes {
namespace {

// Published sizes: learning rate, warm-up, batch and length of the recipe table.
TrainerConfig published(const char* flavor, double lr, int64_t warmup, int64_t batch, int64_t steps,
                        const char* recompute) {
  TrainerConfig c;
  c.model_spec = models::llama3::model_registry(flavor);
  c.optimizer = default_adamw(lr);
  c.lr_scheduler->warmup_steps = warmup;
  c.dataloader->dataset = "c4";
  c.training.local_batch_size = batch;
  c.training.seq_len = 8192;
  c.training.steps = steps;
  c.activation_checkpoint.mode = recompute;
  return c;
}

}  // namespace

TrainerConfig llama3_debugmodel() {
  TrainerConfig c;
  c.model_spec = models::llama3::model_registry("debugmodel");
  c.optimizer = default_adamw(8e-4);
  c.lr_scheduler->warmup_steps = 2;
  c.lr_scheduler->decay_ratio = 0.8;
  c.training.local_batch_size = 8;
  c.training.seq_len = 2048;
  c.training.steps = 10;
  c.metrics->log_freq = 1;
  c.validator->dataloader->dataset = "debug_text_validation";
  return c;
}

TrainerConfig llama3_debugmodel_lora() {
  TrainerConfig c = llama3_debugmodel();
  c.model_spec = models::llama3::model_registry("debugmodel", {LoRAConverter()});
  return c;
}

TrainerConfig llama3_debugmodel_float8() {
  TrainerConfig c = llama3_debugmodel();
  c.model_spec = models::llama3::model_registry(
      "debugmodel", {Float8LinearConverter({.filter_fqns = {"lm_head"}})});
  return c;
}

TrainerConfig llama3_1b() { return published("1B", 3e-4, 200, 4, 1000, "selective"); }
TrainerConfig llama3_3b() { return published("3B", 3e-4, 200, 2, 1000, "selective"); }
TrainerConfig llama3_8b() { return published("8B", 3e-4, 200, 1, 1000, "selective"); }

TrainerConfig llama3_70b() {
  TrainerConfig c = published("70B", 1.5e-4, 200, 8, 1000, "full");
  c.parallelism.tensor_parallel_degree = 8;
  return c;
}

TrainerConfig llama3_405b() {
  TrainerConfig c = published("405B", 8e-5, 600, 2, 3000, "full");
  c.parallelism.tensor_parallel_degree = 8;
  return c;
}

TrainerConfig llama3_from_config() {
  TrainerConfig c = llama3_debugmodel();
  c.model_spec = models::deferred_spec("llama3");
  return c;
}

void register_llama3(config::ConfigRegistry& registry) {
  registry.add("llama3", "llama3_debugmodel", llama3_debugmodel,
               "6M parameters on debug_text, 10 steps");
  registry.add("llama3", "llama3_debugmodel_lora", llama3_debugmodel_lora,
               "the same with LoRA at every linear layer");
  registry.add("llama3", "llama3_debugmodel_float8", llama3_debugmodel_float8,
               "the same with its products in float8, emulated");
  registry.add("llama3", "llama3_1b", llama3_1b, "Llama 3.2 1B on C4");
  registry.add("llama3", "llama3_3b", llama3_3b, "Llama 3.2 3B on C4");
  registry.add("llama3", "llama3_8b", llama3_8b, "Llama 3 8B on C4");
  registry.add("llama3", "llama3_70b", llama3_70b, "Llama 3 70B on C4, tensor parallel 8");
  registry.add("llama3", "llama3_405b", llama3_405b, "Llama 3 405B on C4, tensor parallel 8");
  registry.add("llama3", "llama3_from_config", llama3_from_config,
               "native Llama 3 in the sizes of hf_assets_path/config.json");
}

}  // namespace rhea::recipes
