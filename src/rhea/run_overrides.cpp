#include "rhea/run_overrides.h"

#include "rhea/config/override.h"

namespace rhea {

void apply_overrides(TrainerConfig& config) {
  OverrideConfig& section = config.override;
  if (section.applied) return;
  const auto applied = config::apply_overrides(config, section.imports, config::override_registry(),
                                               /*load=*/nullptr);
  section.active = applied.names();
  section.applied = true;
}

}  // namespace rhea
