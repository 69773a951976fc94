// ConfigRegistry: which modules there are and which runs (config functions) each of them has.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/config/trainer_config.h"

namespace rhea::config {

using ConfigFunction = std::function<TrainerConfig()>;

struct ConfigEntry {
  std::string name;
  std::string help;  // one line
  ConfigFunction make;
};

// Filled explicitly (recipes/registry.cpp), looked up by `--module` and `--config`.
class ConfigRegistry {
 public:
  // Throws Error where the module already has a function of that name.
  void add(std::string_view module, std::string_view function, ConfigFunction make,
           std::string_view help);
  // `alias` names the same module.
  void add_alias(std::string_view alias, std::string_view module);

  // Names in the order of registration.
  std::vector<std::string> modules() const;
  // Functions of a module; throws Error naming the modules there are.
  const std::vector<ConfigEntry>& functions(std::string_view module) const;
  // Throws Error naming what there is.
  const ConfigEntry& find(std::string_view module, std::string_view function) const;

 private:
  struct Module {
    std::string name;
    std::vector<ConfigEntry> functions;
  };
  const Module* module(std::string_view name) const;
  std::vector<Module> modules_;
  std::map<std::string, std::string, std::less<>> aliases_;
};

}  // namespace rhea::config
