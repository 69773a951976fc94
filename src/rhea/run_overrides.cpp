#include "rhea/run_overrides.h"

#include "rhea/config/override.h"
#include "rhea/plugin/loader.h"

namespace rhea {
namespace {

// What a module registers bears the name of its file.
std::optional<std::string> load_module(const std::string& name) {
  const auto file = plugin::find_module(name);
  if (!file) return std::nullopt;
  return plugin::load_module(*file).file.string();
}

}  // namespace

void apply_overrides(TrainerConfig& config) {
  OverrideConfig& section = config.override;
  if (section.applied) return;
  const auto applied =
      config::apply_overrides(config, section.imports, config::override_registry(), load_module);
  section.active = applied.names();
  section.applied = true;
}

}  // namespace rhea
