// Sections `metrics` and `profiler`.
#pragma once
#include "rhea/config/visitor.h"

namespace rhea {

// What is logged, how often and where. Options of a sink of your own: derive from it.
struct MetricsConfig : Config {
  int64_t log_freq = 10;
  bool enable_tensorboard = false;
  std::string save_tb_folder = "tb";
  bool enable_wandb = false;
  bool enable_jsonl = true;
  bool save_for_all_ranks = false;
  bool disable_color_printing = false;
  std::optional<double> peak_flops;
  std::vector<std::string> sinks;

  void fields(Visitor& v) override {
    v("log_freq", log_freq, "log at step 1 and every log_freq steps", at_least(1));
    v("enable_tensorboard", enable_tensorboard, "write TensorBoard event files");
    v("save_tb_folder", save_tb_folder, "folder of the event files, under dump_folder");
    v("enable_wandb", enable_wandb, "write an offline Weights & Biases run");
    v("enable_jsonl", enable_jsonl,
      "write metrics/rank_r.jsonl under dump_folder, one object per logged step");
    v("save_for_all_ranks", save_for_all_ranks,
      "every rank writes its metrics, not only the first");
    v("disable_color_printing", disable_color_printing,
      "no ANSI colours (also off when stdout is no terminal)");
    v("peak_flops", peak_flops,
      "FLOP/s of one device for MFU; None = table, or the measured peak of this CPU",
      greater_than(0));
    v("sinks", sinks, "metric sinks that modules register, by name");
  }
};

// Traces of some steps, and the plan of memory.
struct ProfilerConfig : Config {
  bool enable_profiling = false;
  std::string save_traces_folder = "profiling/traces";
  int64_t profile_freq = 10;
  int64_t profiler_active = 1;
  int64_t profiler_warmup = 3;
  std::optional<int64_t> profiler_repeat;
  std::optional<int64_t> profiler_skip_first;
  std::optional<int64_t> profiler_skip_first_wait;
  bool enable_memory_snapshot = false;
  std::optional<int64_t> memory_snapshot_freq;
  std::string save_memory_snapshot_folder = "profiling/memory_snapshot";
  int64_t memory_snapshot_max_entries = 1000000;

  void fields(Visitor& v) override {
    v("enable_profiling", enable_profiling,
      "profile some steps: a trace for Perfetto, and tables by op and by FQN");
    v("save_traces_folder", save_traces_folder, "folder of the traces, under dump_folder");
    v("profile_freq", profile_freq, "steps of one cycle of waiting, warm-up and recording",
      at_least(1));
    v("profiler_active", profiler_active, "steps recorded in a cycle", at_least(1));
    v("profiler_warmup", profiler_warmup, "steps run hot before them", at_least(0));
    v("profiler_repeat", profiler_repeat, "cycles; None = to the end", at_least(0));
    v("profiler_skip_first", profiler_skip_first, "steps before the first cycle", at_least(0));
    v("profiler_skip_first_wait", profiler_skip_first_wait, "not 0: the first cycle has no waiting",
      at_least(0));
    v("enable_memory_snapshot", enable_memory_snapshot,
      "write the plan of memory: every buffer by FQN, with its lifetime");
    v("memory_snapshot_freq", memory_snapshot_freq,
      "steps between two snapshots; None = profile_freq", at_least(1));
    v("save_memory_snapshot_folder", save_memory_snapshot_folder,
      "folder of the snapshots, under dump_folder");
    v("memory_snapshot_max_entries", memory_snapshot_max_entries,
      "buffers listed in a snapshot; of more, the largest", at_least(1));
  }
};

}  // namespace rhea
