// ConfigRegistry: which modules there are and which runs (config functions) each of them has.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhea/config/config_entry.h"

namespace rhea::config {

class ConfigRegistry;

// The runs of a module that is not registered, say those of a user's file; throws Error where there
// is no such module.
using ModuleFinder =
    std::function<std::vector<ConfigEntry>(std::string_view name, const ConfigRegistry& registry)>;

// Loads what override.imports names, so that the line may use the words that its files register;
// throws Error where that cannot be.
using ImportLoader = std::function<void(const std::vector<std::string>& imports)>;

// Filled explicitly (recipes/registry.cpp), looked up by `--module` and `--config`.
class ConfigRegistry {
 public:
  // Asked for the modules that are not registered; what it finds is kept.
  void set_finder(ModuleFinder finder) { finder_ = std::move(finder); }
  // Called before the options of a line are read. Without one, imports wait for apply_overrides().
  void set_import_loader(ImportLoader loader) { import_loader_ = std::move(loader); }
  const ImportLoader& import_loader() const { return import_loader_; }
  // Throws Error where the module already has a function of that name.
  void add(std::string_view module, std::string_view function, ConfigFunction make,
           std::string_view help);
  // `alias` names the same module.
  void add_alias(std::string_view alias, std::string_view module);

  // Names in the order of registration.
  std::vector<std::string> modules() const;
  // Functions of a module; throws Error naming the modules there are.
  const std::vector<ConfigEntry>& functions(std::string_view module) const;
  // "[a, b]": their names.
  std::string names_of_functions(std::string_view module) const;
  // Throws Error naming what there is.
  const ConfigEntry& find(std::string_view module, std::string_view function) const;

 private:
  struct Module {
    std::string name;
    std::vector<ConfigEntry> functions;
  };
  const Module* module(std::string_view name) const;
  // Grows when the finder is asked; references to what is there stay valid.
  mutable std::deque<Module> modules_;
  ModuleFinder finder_;
  ImportLoader import_loader_;
  std::map<std::string, std::string, std::less<>> aliases_;
};

}  // namespace rhea::config
