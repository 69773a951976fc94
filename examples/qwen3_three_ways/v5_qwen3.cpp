// Way 1: the model as Transformers defines it. Structure, names and weights are those of a
// published folder; nothing here says what a Qwen3 is.
#include <filesystem>

#include "recipes/transformers_backend.h"
#include "rhea/plugin/plugin.h"

using namespace rhea;

namespace {

constexpr const char* kHere = "examples/qwen3_three_ways";

}  // namespace

// Random weights, structure from tiny/config.json. The last save is a published folder.
TrainerConfig v5_qwen3() {
  TrainerConfig c = recipes::transformers_modeling_backend_full();
  c.hf_model = std::string(kHere) + "/tiny";
  c.dump_folder = "outputs/v5_qwen3";
  c.training.local_batch_size = 4;
  c.training.seq_len = 128;
  c.training.steps = 30;
  c.checkpoint->enable = true;
  c.checkpoint->interval = 1000;
  c.checkpoint->last_save_model_only = true;
  c.checkpoint->last_save_in_hf = true;
  c.checkpoint->keep_last_full = false;
  c.metrics->log_freq = 5;
  c.debug.seed = 1;
  c.debug.print_config = false;
  return c;
}
RHEA_CONFIG(v5_qwen3, "Qwen3 from config.json, random weights")

// From a published folder: here the one that v5_qwen3 leaves behind.
TrainerConfig v5_qwen3_finetune() {
  TrainerConfig c = v5_qwen3();
  const auto folder = std::filesystem::absolute("outputs/v5_qwen3/checkpoint/step-30");
  c.hf_model = c.hf_assets_path = folder.string();
  c.dump_folder = "outputs/v5_qwen3_finetune";
  c.training.steps = 20;
  c.optimizer = default_adamw(2e-4);
  c.checkpoint->initial_load_path = folder.string();
  c.checkpoint->initial_load_in_hf = true;
  return c;
}
RHEA_CONFIG(v5_qwen3_finetune, "the same from published weights")

// The real size, for `rhea plan`.
TrainerConfig v5_qwen3_4b() {
  TrainerConfig c = recipes::transformers_modeling_backend_full();
  c.hf_model = std::string(kHere) + "/qwen3_4b";
  c.training.local_batch_size = 1;
  c.training.seq_len = 4096;
  return c;
}
RHEA_CONFIG(v5_qwen3_4b, "Qwen3-4B from config.json")
