// Finds, compiles, checks and loads plugins. A library that was loaded stays loaded: what it
// registered lives in tables.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/config/config_entry.h"

namespace rhea::plugin {

// A file of a user that is part of the process.
struct Module {
  // The .cpp or .so that was found, absolute: the origin of what it registers.
  std::filesystem::path file;
  std::filesystem::path library;             // what was loaded
  std::vector<config::ConfigEntry> configs;  // its RHEA_CONFIGs in the order of the source
};

// The file behind a name: itself where it ends in .cpp, .cc, .cxx or .so, else <name>.cpp or
// <name>.so; ~/ is the home folder. Paths that are not absolute are looked for in the working
// folder, then in the folders of RHEA_PLUGIN_PATH (separated by colons). Nothing where there is
// none; throws Error where a folder has both.
std::optional<std::filesystem::path> find_module(std::string_view name);

// Compiles the file where it is a source and the cache has no entry, checks what it was built
// against, loads it and calls its RHEA_PLUGIN function. The same file a second time is the same
// module. Throws Error: it does not compile, it was built against another Rhea or by another
// toolchain, it needs symbols that there are not, its function threw (with the line).
const Module& load_module(const std::filesystem::path& file);

}  // namespace rhea::plugin
