// Section `activation_checkpoint`: which activations are kept for backward and which are computed
// again.
#pragma once
#include "rhea/config/visitor.h"

namespace rhea {

// Which activations are kept for backward.
struct ActivationCheckpointConfig : Config {
  std::string mode = "selective";
  std::vector<std::string> force_recompute_mm_shapes_by_fqns = {"moe.router.gate"};
  double memory_budget = 0.5;
  bool visualize_memory_budget_pareto = false;

  void fields(Visitor& v) override {
    v("mode", mode,
      "which activations backward computes again; no mode changes a bit of the result",
      one_of{"none", "full", "selective", "memory_budget"}, any_case);
    v("force_recompute_mm_shapes_by_fqns", force_recompute_mm_shapes_by_fqns,
      "selective: matrix products of modules whose FQN contains one of these are computed again");
    v("memory_budget", memory_budget, "memory_budget: 0 = as full, 1 = as none", between{0, 1});
    v("visualize_memory_budget_pareto", visualize_memory_budget_pareto,
      "memory_budget: write the table of budget against recomputation to dump_folder");
    v.no_effect("preserve_rng_state", OptionType::boolean, "true",
                "recomputation is exact by construction");
    v.no_effect("determinism_check", OptionType::text, "default",
                "recomputation is exact by construction");
    v.no_effect("debug", OptionType::boolean, "false", "recomputation is exact by construction");
  }
};

}  // namespace rhea
