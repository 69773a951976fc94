// Lookup of modules and config functions; a name that is not there is an error that lists those
// that are.
#include "rhea/config/registry.h"

#include <fmt/format.h>

#include <algorithm>

namespace rhea::config {

const ConfigRegistry::Module* ConfigRegistry::module(std::string_view name) const {
  if (const auto alias = aliases_.find(name); alias != aliases_.end()) name = alias->second;
  const auto it = std::ranges::find(modules_, name, &Module::name);
  return it == modules_.end() ? nullptr : &*it;
}

void ConfigRegistry::add(std::string_view name, std::string_view function, ConfigFunction make,
                         std::string_view help) {
  auto it = std::ranges::find(modules_, name, &Module::name);
  if (it == modules_.end()) it = modules_.insert(modules_.end(), {std::string(name), {}});
  if (std::ranges::find(it->functions, function, &ConfigEntry::name) != it->functions.end())
    throw Error("config function '{}' is registered twice in module {}", function, name);
  it->functions.push_back({std::string(function), std::string(help), std::move(make)});
}

void ConfigRegistry::add_alias(std::string_view alias, std::string_view name) {
  if (module(alias)) throw Error("module name '{}' is already taken", alias);
  aliases_.emplace(alias, name);
}

std::vector<std::string> ConfigRegistry::modules() const {
  std::vector<std::string> names;
  for (const Module& m : modules_) names.push_back(m.name);
  return names;
}

const std::vector<ConfigEntry>& ConfigRegistry::functions(std::string_view name) const {
  if (const Module* found = module(name)) return found->functions;
  if (finder_) return modules_.emplace_back(std::string(name), finder_(name, *this)).functions;
  throw Error("Cannot load module '{}'. For shorthands, supported modules are: [{}]", name,
              fmt::join(modules(), ", "));
}

std::string ConfigRegistry::names_of_functions(std::string_view name) const {
  std::vector<std::string> names;
  for (const ConfigEntry& entry : functions(name)) names.push_back(entry.name);
  return fmt::format("[{}]", fmt::join(names, ", "));
}

const ConfigEntry& ConfigRegistry::find(std::string_view name, std::string_view function) const {
  const std::vector<ConfigEntry>& all = functions(name);
  const auto it = std::ranges::find(all, function, &ConfigEntry::name);
  if (it != all.end()) return *it;
  throw Error("Config function '{}' not found in {}. Available config functions: {}", function,
              name, names_of_functions(name));
}

}  // namespace rhea::config
