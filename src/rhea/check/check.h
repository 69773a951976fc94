// rhea check: what came from outside against what it replaces, before anyone trains with it.
#pragma once
#include <iosfwd>
#include <string_view>

#include "rhea/config/trainer_config.h"

namespace rhea::check {

// What the definition in f64 may cost for one comparison, by default; a larger one is made with
// stock alone, and the report says so. A hundred GFLOP take about ten seconds of two cores, and
// longer where a node cannot be cut and one core evaluates it: linear_cross_entropy, the gradients
// of norms and of gated_delta_rule, attention with one kv head.
inline constexpr double kMaxReferenceFlops = 2.5e11;
struct CheckOptions {
  double max_reference_flops = kMaxReferenceFlops;
};
// The option of `rhea check` that sets it, in GFLOP.
inline constexpr std::string_view kReferenceOption = "--max_reference_gflop";

// `config` is complete, its plugins are loaded and its overrides applied. Compares every node that
// an override replaced and every op of the run for which a kernel was added with what they replace,
// on the shapes of the run and on odd ones, in f32 and bf16; runs the contract of the op table on
// rows and kernels from outside. Prints what was found; true where everything is within its
// tolerance. Throws Error where the run has nothing from outside.
bool run_check(const TrainerConfig& config, std::ostream& out, const CheckOptions& options = {});

}  // namespace rhea::check
