// How much memory this process can still get.
#pragma once
#include <cstdint>
#include <filesystem>

namespace rhea {

// The least of: free memory, reclaimable caches and free swap of the machine; what the limits of
// this process' control group (version 2) and of the groups above it leave. Beyond it the system
// ends a process without a word. INT64_MAX where nothing can be found out. `root` is where /proc
// and /sys lie.
int64_t available_memory_bytes(const std::filesystem::path& root = "/");

}  // namespace rhea
