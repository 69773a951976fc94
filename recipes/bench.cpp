// The four models of bench/README.md on random tokens: whole training steps that need no data.
// Batch, length and dtype by the ordinary options.
#include "recipes/recipes.h"
#include "rhea/models/flavor.h"
#include "rhea/models/llama3/llama3.h"
#include "rhea/models/qwen3/qwen3.h"

namespace rhea::recipes {
namespace {

TrainerConfig base(ModelSpec spec, int64_t batch, int64_t seq_len) {
  TrainerConfig c;
  c.model_spec = std::move(spec);
  c.optimizer = default_adamw(3e-4);
  c.lr_scheduler->warmup_steps = 2;
  c.dataloader->dataset = "random";
  c.validator->dataloader->dataset = "random";
  c.training.local_batch_size = batch;
  c.training.seq_len = seq_len;
  c.training.steps = 10;
  c.activation_checkpoint.mode = "none";
  c.metrics->log_freq = 1;
  c.debug.seed = 0;
  return c;
}

// Qwen3's block with heads of 64.
TrainerConfig model_a() {
  nn::CosSinRoPE::Config rope;
  rope.max_position_embeddings = 32768;
  rope.theta = 1e4;
  const models::DecoderSizes sizes{.dim = 768,
                                   .n_layers = 12,
                                   .n_heads = 12,
                                   .n_kv_heads = 12,
                                   .head_dim = 64,
                                   .hidden_dim = 2048,
                                   .vocab_size = 32000,
                                   .norm_eps = 1e-6};
  return base(models::make_spec("qwen3", "model_a", models::qwen3::build(sizes, rope), "flex"), 4,
              512);
}

// A Llama without scaled frequencies.
ModelSpec llama(const char* flavor, const models::DecoderSizes& sizes, double theta) {
  nn::ComplexRoPE::Config rope;
  rope.max_position_embeddings = 131072;
  rope.theta = theta;
  return models::make_spec("llama3", flavor, models::llama3::build(sizes, rope), "flex");
}

TrainerConfig smollm2_135m() {
  return base(llama("smollm2_135m",
                    {.dim = 576,
                     .n_layers = 30,
                     .n_heads = 9,
                     .n_kv_heads = 3,
                     .hidden_dim = 1536,
                     .vocab_size = 49152,
                     .tied = true},
                    1e5),
              4, 512);
}

TrainerConfig qwen3_0_6b() { return base(models::qwen3::model_registry("0.6B"), 1, 512); }

TrainerConfig debugmodel() {
  return base(llama("debugmodel",
                    {.dim = 256,
                     .n_layers = 6,
                     .n_heads = 16,
                     .n_kv_heads = 16,
                     .hidden_dim = 768,
                     .vocab_size = 2048},
                    5e5),
              8, 2048);
}

}  // namespace

void register_bench(config::ConfigRegistry& registry) {
  registry.add("bench", "model_a", model_a,
               "134M parameters, 12 layers of width 768, heads of 64, random tokens, 4 x 512");
  registry.add("bench", "smollm2_135m", smollm2_135m, "SmolLM2 135M, random tokens, 4 x 512");
  registry.add("bench", "qwen3_0_6b", qwen3_0_6b, "Qwen3 0.6B, random tokens, 1 x 512");
  registry.add("bench", "debugmodel", debugmodel,
               "6M parameters, heads of 16, random tokens, 8 x 2048");
}

}  // namespace rhea::recipes
