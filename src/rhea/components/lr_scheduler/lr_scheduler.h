// Learning rate over the steps: warm-up, stable, decay.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "rhea/config/sections/optimizer.h"

namespace rhea::lr_scheduler {

// W warm-up steps, D decay steps, total + 1 - W - D stable ones: the one virtual step keeps the
// last real rate above the floor. Factor for the 0-based step s:
//   s < W            (s + 1) / W
//   s < W + stable   1
//   else             min + (1 - min) f(p), p = (s + 1 - W - stable) / D, f = 1 - p | 1 - sqrt(p) |
//   (1 + cos(pi p)) / 2
// Past its end a schedule stays where it ended: p never passes 1.
struct Schedule {
  enum class Decay : uint8_t { linear, sqrt, cosine };
  int64_t total = 1, warmup = 0, decay = 0;
  Decay decay_type = Decay::linear;
  double min_factor = 0;

  double factor(int64_t step) const;
};

// Warm-up or decay that do not fit are shortened; each such change, and a schedule that ends before
// `training_steps`, is a line of `warnings`. Throws Error for an unknown decay_type.
Schedule make_schedule(const LrSchedulerConfig& config, int64_t training_steps,
                       std::vector<std::string>& warnings);

}  // namespace rhea::lr_scheduler
