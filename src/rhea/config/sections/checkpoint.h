// Section `checkpoint`: what is saved when, and what a run starts from.
#pragma once
#include "rhea/config/visitor.h"

namespace rhea {

// Saving, loading and export.
struct CheckpointConfig : Config {
  bool enable = false;
  std::string folder = "checkpoint";
  int64_t interval = 500;
  std::optional<std::string> initial_load_path;
  bool initial_load_model_only = true;
  bool initial_load_in_hf = false;
  bool initial_load_in_hf_quantized = false;
  bool initial_load_strict = true;
  bool last_save_model_only = true;
  bool last_save_in_hf = false;
  std::string export_dtype = "float32";
  bool merge_adapters = false;
  int64_t keep_latest_k = 10;
  int64_t load_step = -1;
  std::vector<std::string> exclude_from_loading;
  bool enable_first_step_checkpoint = false;
  bool create_seed_checkpoint = false;
  bool load_only = false;
  std::string async_mode = "disabled";
  bool save_on_signal = true;
  bool keep_last_full = true;
  std::string on_full_disk = "stop";

  void fields(Visitor& v) override {
    v("enable", enable, "save and load checkpoints");
    v("folder", folder, "under dump_folder, unless absolute");
    v("interval", interval, "steps between two saves", at_least(1));
    v("initial_load_path", initial_load_path,
      "absolute folder to start from while this run has no checkpoint");
    v("initial_load_model_only", initial_load_model_only,
      "take the weights only; off: also optimizer, schedule, data position and step");
    v("initial_load_in_hf", initial_load_in_hf,
      "initial_load_path (or hf_assets_path) holds Hugging Face safetensors");
    v("initial_load_in_hf_quantized", initial_load_in_hf_quantized,
      "those weights are FP8 blocks or MXFP4");
    v("initial_load_strict", initial_load_strict,
      "off: what only those weights or only the model has is left out, with a list");
    v("last_save_model_only", last_save_model_only,
      "the last save holds weights only, in export_dtype");
    v("last_save_in_hf", last_save_in_hf, "the last save is a Hugging Face folder");
    v("export_dtype", export_dtype, "dtype of the last model-only save",
      one_of{"float16", "bfloat16", "float32"});
    v("merge_adapters", merge_adapters,
      "of a LoRA run: last_save_in_hf writes whole weights with the adapters merged in; off: the "
      "adapters alone, as PEFT stores them");
    v("keep_latest_k", keep_latest_k, "older checkpoints are removed; 0 = keep all");
    v("load_step", load_step, "step to load; -1 = the latest complete one", at_least(-1));
    v("exclude_from_loading", exclude_from_loading, "parts that start fresh",
      one_of{"optimizer", "lr_scheduler", "dataloader", "train_state", "model"});
    v("enable_first_step_checkpoint", enable_first_step_checkpoint, "also save after step 1");
    v("create_seed_checkpoint", create_seed_checkpoint,
      "save the initial weights as step 0 and end");
    v("load_only", load_only, "load, never save");
    v("async_mode", async_mode,
      "disabled = wait for the file; else copy, then write while training goes on");
    v("save_on_signal", save_on_signal, "SIGTERM and SIGUSR1 save at the next step boundary");
    v("keep_last_full", keep_last_full,
      "with last_save_model_only also write the full checkpoint of the last step, so that steps "
      "can be raised later");
    v("on_full_disk", on_full_disk,
      "a save that finds no space ends the run, or is tried again at the next interval when an "
      "older "
      "checkpoint is complete",
      one_of{"stop", "retry"});
  }
};

}  // namespace rhea
