// Way 2: the native model. A built-in run is a function; this one is that of Qwen3-32B with another
// model in its place.
#include "recipes/qwen3.h"
#include "rhea/models/qwen3/qwen3.h"
#include "rhea/plugin/plugin.h"

using namespace rhea;

// The real size, for `rhea plan`.
TrainerConfig native_qwen3_4b() {
  TrainerConfig c = recipes::qwen3_32b();
  c.model_spec = models::qwen3::model_registry("4B");
  return c;
}
RHEA_CONFIG(native_qwen3_4b, "native Qwen3-4B as the 32B is trained")

// A size that trains in seconds on two cores, on text that is at hand.
TrainerConfig native_qwen3() {
  TrainerConfig c = native_qwen3_4b();
  models::DecoderSizes sizes = models::qwen3::flavor_sizes("debugmodel");
  sizes.dim = 128;
  sizes.n_layers = 4;
  sizes.n_heads = 4;
  sizes.n_kv_heads = 2;
  sizes.head_dim = 32;
  sizes.hidden_dim = 384;
  c.model_spec = models::qwen3::make_spec("tiny", sizes, models::qwen3::flavor_rope("debugmodel"));
  c.dump_folder = "outputs/native_qwen3";
  c.dataloader->dataset = "debug_text";
  c.lr_scheduler->warmup_steps = 2;
  c.training.local_batch_size = 4;
  c.training.seq_len = 128;
  c.training.steps = 30;
  c.metrics->log_freq = 5;
  c.debug.seed = 1;
  return c;
}
RHEA_CONFIG(native_qwen3, "the same cut to 4 layers of width 128")
