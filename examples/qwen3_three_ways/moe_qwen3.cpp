// Way 3: native experts. Qwen3-30B-A3B cut to 4 layers of 64 experts, 4 of them for a token, with
// plain causal attention.
#include "recipes/qwen3.h"
#include "rhea/models/qwen3/qwen3.h"
#include "rhea/plugin/plugin.h"

using namespace rhea;

namespace {

constexpr int64_t kLayers = 4, kExperts = 64, kTopK = 4;

}  // namespace

// The width of the real model, for `rhea plan`.
TrainerConfig moe_qwen3_wide() {
  return recipes::qwen3_nki_moe_config("30B-A3B", true, kLayers, kExperts, kTopK);
}
RHEA_CONFIG(moe_qwen3_wide, "Qwen3-30B-A3B cut to 4 layers of 64 experts")

// The same, narrow enough to train in seconds on two cores.
TrainerConfig moe_qwen3() {
  TrainerConfig c = moe_qwen3_wide();
  models::DecoderSizes sizes = models::qwen3::flavor_sizes("30B-A3B");
  sizes.n_layers = kLayers;
  sizes.experts.num_experts = kExperts;
  sizes.experts.top_k = kTopK;
  sizes.dim = 128;
  sizes.n_heads = 4;
  sizes.n_kv_heads = 2;
  sizes.head_dim = 32;
  sizes.hidden_dim = 64;
  sizes.vocab_size = 2048;
  c.model_spec = models::qwen3::make_spec("30B-A3B narrow", sizes,
                                          models::qwen3::flavor_rope("30B-A3B"), "sdpa");
  c.dump_folder = "outputs/moe_qwen3";
  c.optimizer = default_adamw(1e-3);
  c.training.local_batch_size = 4;
  c.training.seq_len = 128;
  c.training.steps = 30;
  // The kernels of grouped_experts.cpp compute in f32, and what they save in forward is kept.
  c.training.mixed_precision_param = "float32";
  c.activation_checkpoint.mode = "none";
  c.metrics->log_freq = 5;
  c.debug.seed = 1;
  return c;
}
RHEA_CONFIG(moe_qwen3, "the same, 128 wide")
