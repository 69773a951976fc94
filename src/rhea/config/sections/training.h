// Section `training`: batch, length, precision, number of steps.
#pragma once
#include "rhea/config/visitor.h"

namespace rhea {

// Batch, length, precision and number of steps.
struct TrainingConfig : Config {
  int64_t local_batch_size = 8;
  int64_t global_batch_size = -1;
  int64_t seq_len = 2048;
  double max_norm = 1.0;
  int64_t steps = 10000;
  std::string dtype = "float32";
  std::string mixed_precision_param = "bfloat16";
  std::string mixed_precision_reduce = "float32";
  bool enable_cpu_offload = false;
  std::string max_wall_time;
  std::string on_nonfinite = "stop";

  void fields(Visitor& v) override {
    v("local_batch_size", local_batch_size,
      "sequences per data-parallel rank and accumulation step", at_least(1));
    v("global_batch_size", global_batch_size,
      "sequences per optimizer step over all data-parallel ranks; -1 = local_batch_size * "
      "data-parallel degree");
    v("seq_len", seq_len, "tokens per row; also the length of RoPE tables and of the FLOPs count",
      at_least(1));
    v("max_norm", max_norm, "clip the gradient to this 2-norm over all parameters",
      greater_than(0));
    v("steps", steps, "optimizer steps in all; a resumed run counts the old ones",
      between{1, 1e15});
    v("dtype", dtype, "storage of parameters, gradients and optimizer state",
      one_of{"float32", "bfloat16"});
    v("mixed_precision_param", mixed_precision_param,
      "dtype of computation and of gathered weights", one_of{"float32", "bfloat16"});
    v("mixed_precision_reduce", mixed_precision_reduce, "dtype of gradient reductions",
      one_of{"float32"});
    v("enable_cpu_offload", enable_cpu_offload,
      "keep parameters, gradients and optimizer state in host memory");
    v("max_wall_time", max_wall_time,
      "as 3h30m or 900s: that long after the start, save as on SIGTERM and exit 0; empty = no "
      "limit");
    v("on_nonfinite", on_nonfinite,
      "NaN or Inf in loss or norm: stop before the update, or skip it and count",
      one_of{"stop", "skip"});
    v.alias("max_context_length", "training.seq_len", "torchtitan's second name of seq_len");
    v.alias("num_tokens_per_microbatch_per_dp_rank", "training.local_batch_size",
            "tokens per microbatch and data-parallel rank; a multiple of seq_len");
    v.alias("num_tokens_per_train_step", "training.global_batch_size",
            "tokens per optimizer step; a multiple of seq_len, or -1");
    v.no_effect("gc_freq", OptionType::integer, "50", "there is no garbage collector");
    v.no_effect("gc_debug", OptionType::boolean, "false", "there is no garbage collector");
    v.no_effect("disable_cuda_graphs", OptionType::boolean, "false",
                "the whole step is one static graph");
  }
};

}  // namespace rhea
