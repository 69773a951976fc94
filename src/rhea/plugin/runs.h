// The runs of a user's file, for the registry of config functions.
#pragma once
#include <string_view>
#include <vector>

#include "rhea/config/registry.h"

namespace rhea::plugin {

// What `--module name` means where no built-in module has that name: the runs of a user's file
// (config::ModuleFinder). Throws Error where no file is found, naming the modules there are and the
// places, or where the file has no RHEA_CONFIG.
std::vector<config::ConfigEntry> find_runs(std::string_view name,
                                           const config::ConfigRegistry& registry);

}  // namespace rhea::plugin
