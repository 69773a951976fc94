#include "rhea/config/override_imports.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
namespace rhea::config {
namespace {

struct Entry {
  std::string target, arguments;
};

Entry parse(const std::string& text) {
  const size_t equals = text.find('=');
  Entry entry{text.substr(0, equals), ""};
  if (equals != std::string::npos) {
    entry.arguments = text.substr(equals + 1);
    if (entry.arguments.empty())
      throw Error("override.imports kwargs for '{}' must be a JSON object, got nothing after '='",
                  entry.target);
  }
  return entry;
}

class Resolver {
 public:
  Resolver(const OverrideRegistry& registry, const LoadModule& load)
      : registry_(registry), load_(load) {}

  // What a target means: names, not places, because the table grows as modules load. None: `module`
  // is the origin of a module without overrides.
  struct Meant {
    std::vector<std::string> names;
    std::string module;
  };
  Meant meant_by(const std::string& target) const {
    if (const auto origin = try_load(target, target)) return {all_of(*origin), *origin};
    // Names of overrides have no colon, but folders may.
    const size_t colon = target.rfind(':');
    const bool names_module =
        colon != std::string::npos && target.find('/', colon) == std::string::npos;
    if (names_module) {
      const std::string module = target.substr(0, colon);
      return {{named(target, loaded(target, module), target.substr(colon + 1))}, ""};
    }
    if (const size_t dot = target.rfind('.'); dot != std::string::npos) {
      const std::string module = target.substr(0, dot);
      if (const auto origin = try_load(target, module))
        return {{named(target, *origin, target.substr(dot + 1))}, ""};
    }
    if (find(target)) return {{target}, ""};
    not_found(target, target);
  }

  const Override* find(const std::string& name) const {
    const auto at = std::ranges::find(registry_.overrides(), name, &Override::name);
    return at == registry_.overrides().end() ? nullptr : &*at;
  }

 private:
  [[noreturn]] void not_found(const std::string& target, const std::string& module) const {
    std::vector<std::string> known;
    for (const Override& override : registry_.overrides()) known.push_back(override.name);
    throw Error(
        "Failed to import override target '{}': module '{}' could not be imported: there is no {} "
        "in the working directory or on RHEA_PLUGIN_PATH{}",
        target, module,
        module.ends_with(".cpp") || module.ends_with(".so")
            ? module
            : fmt::format("{0}.cpp or {0}.so", module),
        known.empty() ? "" : fmt::format("; registered: {}", fmt::join(known, ", ")));
  }

  std::optional<std::string> try_load(const std::string& target, const std::string& module) const {
    if (!load_ || module.empty()) return std::nullopt;
    try {
      return load_(module);
    } catch (const ExitError&) {
      throw;  // has an exit code of its own
    } catch (const Error& error) {
      throw Error("Failed to import override target '{}': module '{}' could not be imported: {}",
                  target, module, error.what());
    }
  }
  std::string loaded(const std::string& target, const std::string& module) const {
    if (auto origin = try_load(target, module)) return *origin;
    not_found(target, module);
  }

  std::vector<std::string> all_of(const std::string& origin) const {
    std::vector<std::string> names;
    for (const Override& override : registry_.overrides())
      if (override.origin == origin) names.push_back(override.name);
    return names;
  }

  std::string named(const std::string& target, const std::string& origin,
                    const std::string& name) const {
    std::vector<std::string> names;
    // An override may carry its module's name in its own.
    const std::string module = std::filesystem::path(origin).stem();
    for (const Override& override : registry_.overrides()) {
      if (override.origin != origin) continue;
      if (override.name == name || override.name == fmt::format("{}.{}", module, name))
        return override.name;
      names.push_back(override.name);
    }
    throw Error("override.imports target '{}' names no registered override. {} has: {}", target,
                origin, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
  }

  const OverrideRegistry& registry_;
  const LoadModule& load_;
};

}  // namespace

ResolvedImports resolve_imports(std::span<const std::string> imports,
                                const OverrideRegistry& registry, const LoadModule& load) {
  ResolvedImports resolved;
  const Resolver resolver(registry, load);
  std::vector<std::pair<std::string, std::string>> named;  // override, arguments
  for (const std::string& text : imports) {
    const Entry entry = parse(text);
    const auto [names, module] = resolver.meant_by(entry.target);
    if (names.empty()) {
      if (!entry.arguments.empty())
        throw Error(
            "override.imports target '{}' names no registered override. Its module registers none, "
            "so nothing takes the arguments {}",
            entry.target, entry.arguments);
      resolved.without_overrides.push_back(module);
    }
    for (const std::string& name : names) {
      const auto same = [&](const auto& other) { return other.first == name; };
      if (std::ranges::any_of(named, same))
        throw Error("Override '{}' is named by two entries. List it once.", name);
      named.emplace_back(name, entry.arguments);
    }
  }
  for (auto& [name, arguments] : named) {
    const Override* override = resolver.find(name);
    override->check_arguments(arguments);
    resolved.active.push_back({override, std::move(arguments)});
  }
  return resolved;
}

}  // namespace rhea::config
