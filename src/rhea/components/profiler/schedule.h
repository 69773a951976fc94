// Which steps of a run are recorded.
#pragma once
#include <cstdint>

#include "rhea/config/sections/metrics.h"

namespace rhea::profiler {

// Cycles of profile_freq steps: waiting, then profiler_warmup steps, then profiler_active recorded
// ones. profiler_skip_first steps come before the first cycle; with profiler_skip_first_wait the
// first cycle begins with its warm-up; after profiler_repeat cycles nothing is recorded any more.
// `step` counts from 1.
enum class StepKind { idle, recorded, recorded_last };  // last: of its cycle
StepKind kind_of_step(const ProfilerConfig& config, int64_t step);

}  // namespace rhea::profiler
