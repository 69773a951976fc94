// Learning rate over the steps: warm-up, stable, decay.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/base/named_table.h"
#include "rhea/config/sections/optimizer.h"

namespace rhea::lr_scheduler {

// A shape of the decay, `lr_scheduler.decay_type`.
struct Decay {
  std::string name;  // in lr_scheduler.decay_type
  // f(p) from 1 at p = 0 to 0 at p = 1; asked for p in (0, 1]. May read further fields of a config
  // that is derived from LrSchedulerConfig.
  std::function<double(double p, const LrSchedulerConfig& config)> shape;
};

// linear: 1 - p; sqrt: 1 - sqrt(p); cosine: (1 + cos(pi p)) / 2; and what modules add.
NamedTable<Decay>& decays();

// W warm-up steps, D decay steps, total + 1 - W - D stable ones: the one virtual step keeps the
// last real rate above the floor. Factor for the 0-based step s:
//   s < W            (s + 1) / W
//   s < W + stable   1
//   else             min + (1 - min) f(p), p = (s + 1 - W - stable) / D, f of decays()
// Past its end a schedule stays where it ended: p never passes 1.
struct Schedule {
  int64_t total = 1;                      // steps of the whole schedule
  int64_t warmup = 0, decay = 0;          // W and D
  std::function<double(double p)> shape;  // f
  double min_factor = 0;                  // floor of the factor

  // Throws Error naming the step where the shape gives no number from 0 on.
  double factor(int64_t step) const;
};

// `config` must outlive the schedule. Warm-up or decay that do not fit are shortened; each such
// change, and a schedule that ends before `training_steps`, is a line of `warnings`. Throws Error
// for an unknown decay_type.
Schedule make_schedule(const LrSchedulerConfig& config, int64_t training_steps,
                       std::vector<std::string>& warnings);

}  // namespace rhea::lr_scheduler
