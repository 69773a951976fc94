// override.imports: entries, the modules that they name, and the overrides that are meant.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rhea/config/override_registry.h"

namespace rhea::config {

// Loads the module of a name or file and returns the origin under which its overrides are
// registered; nothing where there is no such module. Throws Error where there is one that cannot be
// loaded. Asked again for the same module, it returns the same.
using LoadModule = std::function<std::optional<std::string>(const std::string& module)>;

// An override that the run names, with its arguments as a JSON object ("" = none).
struct ActiveOverride {
  const Override* override = nullptr;
  std::string arguments;
};

struct ResolvedImports {
  std::vector<ActiveOverride> active;
  // Origins of modules that were named whole and register no override, as one of kernels does.
  std::vector<std::string> without_overrides;
};

// Entries are `module` (a file or name: every override of it, if any), `module:name`,
// `module.name`, or the name of an override that this program registered itself; then `={"json":
// 1}`. A module is looked for before a name. Throws Error with the text of the spec for what cannot
// be found, is named twice or has arguments that do not fit. The overrides lie in the registry,
// which may grow while modules load.
ResolvedImports resolve_imports(std::span<const std::string> imports,
                                const OverrideRegistry& registry, const LoadModule& load);

}  // namespace rhea::config
