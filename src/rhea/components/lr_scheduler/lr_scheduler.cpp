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
  const double made = min_factor + (1 - min_factor) * shape(p);
  if (!std::isfinite(made) || made < 0)
    throw Error(
        "lr_scheduler.decay_type: the factor of step {} is {}; it must be a number from 0 on",
        step + 1, made);
  return made;
}

NamedTable<Decay>& decays() {
  static NamedTable<Decay> table = [] {
    using Config = LrSchedulerConfig;
    NamedTable<Decay> made("lr_scheduler.decay_type", [](const Decay& decay) -> std::string_view {
      return decay.shape ? "" : "has no shape function";
    });
    made.add({"linear", [](double p, const Config&) { return 1 - p; }}, kInTree);
    made.add({"sqrt", [](double p, const Config&) { return 1 - std::sqrt(p); }}, kInTree);
    made.add({"cosine",
              [](double p, const Config&) { return 0.5 * (1 + std::cos(std::numbers::pi * p)); }},
             kInTree);
    return made;
  }();
  return table;
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
  made.shape = [decay = &decays().at(config.decay_type), &config](double p) {
    return decay->shape(p, config);
  };
  if (made.total < training_steps)
    warnings.push_back(fmt::format(
        "lr_scheduler.total_steps ({}) is below training.steps ({}): from step {} on the learning "
        "rate stays at {} of its full value (min_lr_factor is {})",
        made.total, training_steps, made.total + 1, made.factor(made.total), made.min_factor));
  return made;
}

}  // namespace rhea::lr_scheduler
