// Section `debug`: seed, determinism, checks, dumps.
#pragma once
#include "rhea/config/visitor.h"

namespace rhea {

// Seed, checks and dumps.
struct DebugConfig : Config {
  std::optional<int64_t> seed;
  bool deterministic = false;
  bool deterministic_warn_only = false;
  bool moe_force_load_balance = false;
  bool detect_anomaly = false;
  bool print_config = false;
  std::optional<std::string> save_config_file;
  bool enable_structured_logging = true;
  std::vector<std::string> disable_passes;
  std::string dump_graphs;
  bool batch_invariant = false;

  void fields(Visitor& v) override {
    v("seed", seed, "base of all random numbers; None = drawn at the start and logged",
      at_least(0));
    v("deterministic", deterministic, "the same run on the same layout repeats bit for bit");
    v("deterministic_warn_only", deterministic_warn_only,
      "a kernel that cannot repeat warns instead of stopping");
    v("moe_force_load_balance", moe_force_load_balance,
      "token t, slot k goes to expert (t*K + k) mod E");
    v("detect_anomaly", detect_anomaly,
      "check every result for NaN and Inf; names the first op (slow)");
    v("print_config", print_config, "log the resolved config as JSON");
    v("save_config_file", save_config_file,
      "file under dump_folder for the resolved config as JSON");
    v("enable_structured_logging", enable_structured_logging, "write structured_logs/rank_r.jsonl");
    v("disable_passes", disable_passes, "graph passes to skip, by name");
    v("dump_graphs", dump_graphs, "folder for the graph text after every pass; empty = none");
    v("batch_invariant", batch_invariant, "not available in pre-training");
    v.no_effect("spmd_typechecking", OptionType::boolean, "false",
                "the graph verifier always runs in debug builds");
  }
};

}  // namespace rhea
