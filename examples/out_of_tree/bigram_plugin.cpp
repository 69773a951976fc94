// The plugin: a kernel, a model, a run.
#include <cmath>

#include "bigram_model.h"
#include "rhea/plugin/plugin.h"

namespace {

// Rows are the items: each is computed by one thread, so bits do not depend on their number.
int64_t num_rows(const rhea::ir::OpInstance& node) { return node.out[0].shape[0]; }

std::string accepts(const rhea::ir::OpInstance& node) {
  if (node.out[0].dtype != rhea::DType::f32) return "f32 only";
  return node.out[0].rank() == 2 ? "" : "two dims only";
}

void my_swiglu(const rhea::ir::KernelArgs& args, const rhea::ir::OpInstance& node) {
  const int64_t width = node.out[0].shape[1];
  const float* const gate = args.in[0].as<const float>();
  const float* const value = args.in[1].as<const float>();
  float* const out = args.out[0].as<float>();
  for (int64_t i = args.begin * width; i < args.end * width; ++i)
    out[i] = gate[i] / (1 + std::exp(-gate[i])) * value[i];
}

rhea::TrainerConfig bigram_debugmodel() {
  rhea::TrainerConfig c;
  c.model_spec = bigram::spec(64, 512);
  c.optimizer = rhea::default_adamw(3e-3);
  c.lr_scheduler->warmup_steps = 1;
  c.training.local_batch_size = 2;
  c.training.seq_len = 64;
  c.training.steps = 20;
  c.training.mixed_precision_param = "float32";  // the kernel above takes nothing else
  c.metrics->log_freq = 1;
  c.dataloader->dataset = "random";
  return c;
}

}  // namespace

RHEA_CONFIG(bigram_debugmodel, "one block without attention, random tokens")

RHEA_PLUGIN(p) {
  p.cpu_kernel("swiglu",
               {.name = "my_swiglu", .accepts = accepts, .items = num_rows, .run = my_swiglu});
  p.family({.name = "bigram"});
}
