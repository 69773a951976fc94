// The list of in-tree runs.
#include "recipes/recipes.h"

namespace rhea::recipes {

config::ConfigRegistry builtin_registry() {
  config::ConfigRegistry registry;
  register_llama3(registry);
  register_qwen3(registry);
  register_transformers_backend(registry);
  register_bench(registry);
  return registry;
}

}  // namespace rhea::recipes
