// Whole runs: functions that return a config. Each file names its own at its end, registry.cpp
// lists the files.
#pragma once
#include "rhea/config/registry.h"

namespace rhea::recipes {

// What `rhea config --list` shows.
config::ConfigRegistry builtin_registry();

void register_llama3(config::ConfigRegistry& registry);
void register_qwen3(config::ConfigRegistry& registry);
void register_transformers_backend(config::ConfigRegistry& registry);
void register_bench(config::ConfigRegistry& registry);

}  // namespace rhea::recipes
