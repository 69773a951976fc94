// Defaults of sections that are computed.
#include <cstdlib>

#include "rhea/config/trainer_config.h"

namespace rhea {

OptimizerConfig default_adamw(double lr) {
  ParamGroup group;
  group.optimizer_kwargs.lr = lr;
  group.optimizer_kwargs.betas = {0.9, 0.95};
  group.optimizer_kwargs.eps = 1e-8;
  group.optimizer_kwargs.weight_decay = 0.1;
  OptimizerConfig config;
  config.param_groups = {group};
  return config;
}

std::string ExecutorConfig::resolved_cache_dir() const {
  constexpr std::string_view variable = "$XDG_CACHE_HOME";
  if (!cache_dir.starts_with(variable)) return cache_dir;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::string base;
  if (cache && *cache)
    base = cache;
  else if (home && *home)
    base = std::string(home) + "/.cache";
  else
    base = "/tmp";
  return base + cache_dir.substr(variable.size());
}

}  // namespace rhea
