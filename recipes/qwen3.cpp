// Runs of Qwen3.
#include "recipes/qwen3.h"

#include "recipes/recipes.h"
#include "rhea/base/error.h"
#include "rhea/models/qwen3/qwen3.h"
#include "rhea/models/registry.h"

namespace rhea::recipes {
namespace {

TrainerConfig base(const char* flavor, double lr, int64_t warmup, int64_t batch, int64_t seq_len,
                   int64_t steps) {
  TrainerConfig c;
  c.model_spec = models::qwen3::model_registry(flavor);
  c.optimizer = default_adamw(lr);
  c.lr_scheduler->warmup_steps = warmup;
  c.training.local_batch_size = batch;
  c.training.seq_len = seq_len;
  c.training.steps = steps;
  return c;
}

TrainerConfig debug_run(const char* flavor) {
  TrainerConfig c = base(flavor, 8e-4, 2, 8, 2048, 10);
  c.lr_scheduler->decay_ratio = 0.8;
  c.metrics->log_freq = 1;
  c.validator->dataloader->dataset = "debug_text_validation";
  return c;
}

TrainerConfig on_c4(TrainerConfig c) {
  c.dataloader->dataset = "c4";
  return c;
}

// 8B and above: everything is recomputed, the export is float16.
TrainerConfig large(const char* flavor, int64_t batch) {
  TrainerConfig c = on_c4(base(flavor, 8e-4, 600, batch, 4096, 3000));
  c.activation_checkpoint.mode = "full";
  c.checkpoint->export_dtype = "float16";
  return c;
}

}  // namespace

TrainerConfig qwen3_debugmodel() { return debug_run("debugmodel"); }
TrainerConfig qwen3_debugmodel_non_fused_qkv() { return debug_run("debugmodel_non_fused_qkv"); }

TrainerConfig qwen3_moe_debug() {
  TrainerConfig c = base("debugmodel_moe", 3e-4, 2, 4, 4096, 10);
  c.metrics->log_freq = 1;
  c.validator->dataloader->dataset = "debug_text_validation";
  return c;
}

TrainerConfig qwen3_0_6b() { return on_c4(base("0.6B", 3e-4, 2, 4, 4096, 10)); }
TrainerConfig qwen3_1_7b() { return on_c4(base("1.7B", 8e-4, 20, 4, 4096, 100)); }
TrainerConfig qwen3_4b() { return on_c4(base("4B", 8e-4, 600, 4, 4096, 3000)); }
TrainerConfig qwen3_8b() { return large("8B", 4); }
TrainerConfig qwen3_14b() { return large("14B", 4); }
TrainerConfig qwen3_32b() { return large("32B", 2); }
TrainerConfig qwen3_30b_a3b() { return large("30B-A3B", 2); }
TrainerConfig qwen3_235b_a22b() { return large("235B-A22B", 1); }

TrainerConfig qwen3_from_config() {
  TrainerConfig c = qwen3_debugmodel();
  c.model_spec = models::deferred_spec("qwen3");
  return c;
}

TrainerConfig qwen3_nki_moe_config(std::string_view flavor, bool compile, int64_t n_layers,
                                   int64_t num_experts, int64_t top_k) {
  models::DecoderSizes sizes = models::qwen3::flavor_sizes(flavor);
  if (sizes.experts.num_experts == 0)
    throw Error(
        "qwen3_nki_moe_config: flavor '{}' has no experts; take debugmodel_moe, 30B-A3B or "
        "235B-A22B",
        flavor);
  sizes.n_layers = n_layers;
  sizes.experts.num_experts = num_experts;
  sizes.experts.top_k = top_k;
  TrainerConfig c = qwen3_moe_debug();
  c.model_spec =
      models::qwen3::make_spec(flavor, sizes, models::qwen3::flavor_rope(flavor), "sdpa");
  c.compile.enable = compile;
  return c;
}

void register_qwen3(config::ConfigRegistry& registry) {
  registry.add("qwen3", "qwen3_debugmodel", qwen3_debugmodel,
               "32M parameters on debug_text, 10 steps");
  registry.add("qwen3", "qwen3_debugmodel_non_fused_qkv", qwen3_debugmodel_non_fused_qkv,
               "the same with q, k and v as products of their own");
  registry.add("qwen3", "qwen3_moe_debug", qwen3_moe_debug,
               "316M parameters in 64 experts on debug_text, 10 steps");
  registry.add("qwen3", "qwen3_0_6b", qwen3_0_6b, "Qwen3 0.6B on C4");
  registry.add("qwen3", "qwen3_1_7b", qwen3_1_7b, "Qwen3 1.7B on C4");
  registry.add("qwen3", "qwen3_4b", qwen3_4b, "Qwen3 4B on C4");
  registry.add("qwen3", "qwen3_8b", qwen3_8b, "Qwen3 8B on C4, full recomputation");
  registry.add("qwen3", "qwen3_14b", qwen3_14b, "Qwen3 14B on C4, full recomputation");
  registry.add("qwen3", "qwen3_32b", qwen3_32b, "Qwen3 32B on C4, full recomputation");
  registry.add("qwen3", "qwen3_30b_a3b", qwen3_30b_a3b,
               "Qwen3 30B-A3B (128 experts) on C4, full recomputation");
  registry.add("qwen3", "qwen3_235b_a22b", qwen3_235b_a22b,
               "Qwen3 235B-A22B (128 experts) on C4, full recomputation");
  registry.add("qwen3", "qwen3_from_config", qwen3_from_config,
               "native Qwen3 in the sizes of hf_assets_path/config.json");
}

}  // namespace rhea::recipes
