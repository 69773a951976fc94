// Sections `optimizer` and `lr_scheduler`.
#pragma once
#include "rhea/config/visitor.h"

namespace rhea {

// Arguments of one optimizer; what is not set takes that optimizer's own default. Setting one that
// the named optimizer does not have is an error.
struct OptimizerKwargs : Config {
  std::optional<double> lr;
  std::optional<std::vector<double>> betas;
  std::optional<double> eps;
  std::optional<double> weight_decay;
  std::optional<double> momentum;
  std::optional<double> dampening;
  std::optional<bool> nesterov;
  std::optional<std::vector<double>> ns_coefficients;
  std::optional<int64_t> ns_steps;
  std::optional<std::string> adjust_lr_fn;
  std::vector<std::string> more;  // "name=value" for arguments that only an outside optimizer has

  void fields(Visitor& v) override {
    v("lr", lr, "learning rate before the schedule's factor", at_least(0));
    v("betas", betas, "Adam, AdamW: decay of the two moments", between{0, 1});
    v("eps", eps, "added to the denominator", at_least(0));
    v("weight_decay", weight_decay, "AdamW: decoupled; Adam, SGD: added to the gradient",
      at_least(0));
    v("momentum", momentum, "SGD, DistMuon", at_least(0));
    v("dampening", dampening, "SGD");
    v("nesterov", nesterov, "SGD, DistMuon");
    v("ns_coefficients", ns_coefficients,
      "DistMuon: the three coefficients of a Newton-Schulz step");
    v("ns_steps", ns_steps, "DistMuon: Newton-Schulz steps", at_least(1));
    v("adjust_lr_fn", adjust_lr_fn, "DistMuon: scale of the update by the matrix' shape",
      one_of{"original", "match_rms_adamw", "spectral_unclamped"});
    v("more", more, "name=value of further arguments, of an optimizer that a module registers");
  }
};

// The parameters that one optimizer updates with one set of arguments.
struct ParamGroup : Config {
  std::string pattern = ".*";
  std::string optimizer_name = "AdamW";
  OptimizerKwargs optimizer_kwargs;

  void fields(Visitor& v) override {
    v("pattern", pattern,
      "regular expression searched in the parameter's FQN; the first group that matches wins");
    v("optimizer_name", optimizer_name, "AdamW, Adam, SGD, or one that a module registers");
    v("optimizer_kwargs", optimizer_kwargs,
      "arguments of that optimizer; groups do not inherit from each other");
  }
};

// Which optimizer updates which parameters.
struct OptimizerConfig : Config {
  std::vector<ParamGroup> param_groups;
  std::string implementation = "fused";

  void fields(Visitor& v) override {
    v("param_groups", param_groups, "which optimizer updates which parameters");
    v("implementation", implementation,
      "fused, foreach and for-loop are the same; fused_opt_states_bf16 stores the moments in "
      "bfloat16",
      one_of{"fused", "foreach", "for-loop", "fused_opt_states_bf16"});
  }
};

struct AdamW {
  // One group for every parameter: AdamW, betas (.9, .95), eps 1e-8, weight decay .1 (norms,
  // biases, embeddings included).
  struct Config : OptimizerConfig {
    // `lr` before the factor of the schedule.
    explicit Config(double lr = 8e-4);
  };
};
// What a run has where it says nothing else.
inline AdamW::Config default_adamw(double lr = 8e-4) { return AdamW::Config(lr); }

// Learning rate over the steps. Options of a decay of your own: derive from it.
struct LrSchedulerConfig : Config {
  int64_t warmup_steps = 200;
  std::optional<int64_t> total_steps;
  std::optional<double> decay_ratio;
  std::string decay_type = "linear";
  double min_lr_factor = 0.0;

  void fields(Visitor& v) override {
    v("warmup_steps", warmup_steps, "steps of linear warm-up", between{0, 1e15});
    v("total_steps", total_steps,
      "length of the schedule, after which the rate stays where it ended; None = training.steps",
      between{1, 1e15});
    v("decay_ratio", decay_ratio,
      "share of total_steps that decays; None = all that follows the warm-up", between{0, 1});
    v("decay_type", decay_type,
      "shape of the decay: linear, sqrt, cosine, or one that a module registers");
    v("min_lr_factor", min_lr_factor, "floor of the decay as a factor of lr", between{0, 1});
  }
};

}  // namespace rhea
