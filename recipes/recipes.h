// Whole runs: functions that return a config. registry.cpp lists them under their names.
#pragma once
#include "rhea/config/registry.h"

namespace rhea::recipes {

// The in-tree modules: llama3, qwen3, transformers_modeling_backend (hf), bench.
config::ConfigRegistry builtin_registry();

void register_llama3(config::ConfigRegistry& registry);
void register_qwen3(config::ConfigRegistry& registry);
void register_transformers_backend(config::ConfigRegistry& registry);
void register_bench(config::ConfigRegistry& registry);

}  // namespace rhea::recipes
