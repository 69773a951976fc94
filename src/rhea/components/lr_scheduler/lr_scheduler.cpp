// The formulas of lr_scheduler.h.
#include "rhea/components/lr_scheduler/lr_scheduler.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "rhea/base/error.h"

namespace rhea::lr_scheduler {

double Schedule::factor(int64_t step) const {
  const int64_t stable = total + 1 - warmup - decay;
  if (step < warmup) return static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (step < warmup + stable || decay == 0) return 1;
  const double p =
      std::min(1.0, static_cast<double>(step + 1 - warmup - stable) / static_cast<double>(decay));
  double f = 0;
  switch (decay_type) {
    case Decay::linear:
      f = 1 - p;
      break;
    case Decay::sqrt:
      f = 1 - std::sqrt(p);
      break;
    case Decay::cosine:
      f = 0.5 * (1 + std::cos(std::numbers::pi * p));
      break;
  }
  return min_factor + (1 - min_factor) * f;
}

Schedule make_schedule(const LrSchedulerConfig& config, int64_t training_steps,
                       std::vector<std::string>& warnings) {
  Schedule made;
  made.total = config.total_steps.value_or(training_steps);
  made.warmup = config.warmup_steps;
  made.min_factor = config.min_lr_factor;
  if (made.warmup > made.total) {
    warnings.push_back(
        fmt::format("Warmup steps ({}) exceed total steps ({}). Adjusting warmup steps to {}.",
                    made.warmup, made.total, made.total));
    made.warmup = made.total;
  }
  if (config.decay_ratio) {
    // nearbyint rounds half to even, as Python's round does.
    made.decay =
        static_cast<int64_t>(std::nearbyint(static_cast<double>(made.total) * *config.decay_ratio));
    if (made.warmup + made.decay > made.total) {
      warnings.push_back(fmt::format(
          "Warmup ({}) + decay ({}) steps exceed total steps ({}). Adjusting decay steps to {}.",
          made.warmup, made.decay, made.total, made.total - made.warmup));
      made.decay = made.total - made.warmup;
    }
  } else {
    made.decay = made.total - made.warmup;
  }
  if (made.total < training_steps)
    warnings.push_back(fmt::format(
        "lr_scheduler.total_steps ({}) is below training.steps ({}): from step {} on the learning "
        "rate stays at {} of its full value (min_lr_factor is {})",
        made.total, training_steps, made.total + 1, made.decay == 0 ? 1.0 : made.min_factor,
        made.min_factor));
  if (config.decay_type == "linear")
    made.decay_type = Schedule::Decay::linear;
  else if (config.decay_type == "sqrt")
    made.decay_type = Schedule::Decay::sqrt;
  else if (config.decay_type == "cosine")
    made.decay_type = Schedule::Decay::cosine;
  else
    throw Error("lr_scheduler.decay_type '{}' is unknown; known: linear, sqrt, cosine",
                config.decay_type);
  return made;
}

}  // namespace rhea::lr_scheduler
