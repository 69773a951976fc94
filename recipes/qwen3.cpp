// Runs of Qwen3.
#include "rhea/models/qwen3/qwen3.h"

#include "recipes/recipes.h"
#include "rhea/models/registry.h"

namespace rhea::recipes {
namespace {

TrainerConfig base(const char* flavor, double lr, int64_t warmup, int64_t batch, int64_t seq_len,
                   int64_t steps) {
  TrainerConfig c;
  c.model_spec = models::qwen3::model_registry(flavor);
  c.optimizer = default_adamw(lr);
  c.lr_scheduler.warmup_steps = warmup;
  c.training.local_batch_size = batch;
  c.training.seq_len = seq_len;
  c.training.steps = steps;
  return c;
}

TrainerConfig debug_run(const char* flavor) {
  TrainerConfig c = base(flavor, 8e-4, 2, 8, 2048, 10);
  c.lr_scheduler.decay_ratio = 0.8;
  c.metrics.log_freq = 1;
  c.validator.dataloader->dataset = "debug_text_validation";
  return c;
}

TrainerConfig qwen3_debugmodel() { return debug_run("debugmodel"); }
TrainerConfig qwen3_debugmodel_non_fused_qkv() { return debug_run("debugmodel_non_fused_qkv"); }

TrainerConfig on_c4(TrainerConfig c) {
  c.dataloader->dataset = "c4";
  return c;
}

// 8B and above: everything is recomputed, the export is float16.
TrainerConfig large(const char* flavor, int64_t batch) {
  TrainerConfig c = on_c4(base(flavor, 8e-4, 600, batch, 4096, 3000));
  c.activation_checkpoint.mode = "full";
  c.checkpoint.export_dtype = "float16";
  return c;
}

TrainerConfig qwen3_0_6b() { return on_c4(base("0.6B", 3e-4, 2, 4, 4096, 10)); }
TrainerConfig qwen3_1_7b() { return on_c4(base("1.7B", 8e-4, 20, 4, 4096, 100)); }
TrainerConfig qwen3_4b() { return on_c4(base("4B", 8e-4, 600, 4, 4096, 3000)); }
TrainerConfig qwen3_8b() { return large("8B", 4); }
TrainerConfig qwen3_14b() { return large("14B", 4); }
TrainerConfig qwen3_32b() { return large("32B", 2); }

// The native model in the sizes of hf_assets_path/config.json.
TrainerConfig qwen3_from_config() {
  TrainerConfig c = qwen3_debugmodel();
  c.model_spec = models::deferred_spec("qwen3");
  return c;
}

}  // namespace

void register_qwen3(config::ConfigRegistry& registry) {
  registry.add("qwen3", "qwen3_debugmodel", qwen3_debugmodel,
               "32M parameters on debug_text, 10 steps");
  registry.add("qwen3", "qwen3_debugmodel_non_fused_qkv", qwen3_debugmodel_non_fused_qkv,
               "the same with q, k and v as products of their own");
  registry.add("qwen3", "qwen3_0_6b", qwen3_0_6b, "Qwen3 0.6B on C4");
  registry.add("qwen3", "qwen3_1_7b", qwen3_1_7b, "Qwen3 1.7B on C4");
  registry.add("qwen3", "qwen3_4b", qwen3_4b, "Qwen3 4B on C4");
  registry.add("qwen3", "qwen3_8b", qwen3_8b, "Qwen3 8B on C4, full recomputation");
  registry.add("qwen3", "qwen3_14b", qwen3_14b, "Qwen3 14B on C4, full recomputation");
  registry.add("qwen3", "qwen3_32b", qwen3_32b, "Qwen3 32B on C4, full recomputation");
  registry.add("qwen3", "qwen3_from_config", qwen3_from_config,
               "native Qwen3 in the sizes of hf_assets_path/config.json");
}

}  // namespace rhea::recipes
