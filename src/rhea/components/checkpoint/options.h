// Rules of the `checkpoint` section that span several options.
#pragma once
#include <cstdint>

#include "rhea/config/report.h"
#include "rhea/config/sections/checkpoint.h"

namespace rhea::checkpoint {

// Adds every problem of the section to `report`; call before anything is allocated.
void check_options(const CheckpointConfig& config, int64_t world_size, config::Report& report);

// True for async_mode `async` and `async_with_pinned_mem` in any case.
bool is_async(const CheckpointConfig& config);

}  // namespace rhea::checkpoint
