// The arithmetic of cycles.
#include "rhea/components/profiler/schedule.h"

namespace rhea::profiler {

StepKind kind_of_step(const ProfilerConfig& config, int64_t step) {
  const int64_t active = config.profiler_active;
  const int64_t wait = config.profile_freq - config.profiler_warmup - active;
  int64_t index = step - 1 - config.profiler_skip_first.value_or(0);
  if (index < 0) return StepKind::idle;
  if (config.profiler_skip_first_wait.value_or(0) != 0) index += wait;
  const int64_t repeat = config.profiler_repeat.value_or(0);
  if (repeat > 0 && index / config.profile_freq >= repeat) return StepKind::idle;
  const int64_t in_cycle = index % config.profile_freq;
  if (in_cycle < config.profile_freq - active) return StepKind::idle;
  return in_cycle == config.profile_freq - 1 ? StepKind::recorded_last : StepKind::recorded;
}

}  // namespace rhea::profiler
