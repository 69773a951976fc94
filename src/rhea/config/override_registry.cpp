#include "rhea/config/override_registry.h"

#include <algorithm>

#include "rhea/config/glob.h"
#include "rhea/config/json_values.h"
#include "rhea/config/trainer_config.h"

namespace rhea::config {
namespace {

bool is_name(std::string_view name) {
  constexpr std::string_view kCharacters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
  return !name.empty() && name.find_first_not_of(kCharacters) == std::string_view::npos;
}

std::string arguments_of(const std::string& override_name) {
  return fmt::format("override.imports kwargs for '{}'", override_name);
}

}  // namespace

namespace detail {

void read_arguments(Config& arguments, const std::string& json, const std::string& override_name) {
  if (!json.empty()) set_fields(arguments, json, arguments_of(override_name));
}

void refuse_arguments(const std::string& json, const std::string& override_name) {
  struct None : Config {
    void fields(Visitor&) override {}
  } none;
  read_arguments(none, json, override_name);
}

}  // namespace detail

void OverrideRegistry::add(Override made, const std::type_info& target) {
  if (!is_name(made.name))
    throw Error("Override '{}' of {}: a name consists of letters, digits, '_' and '.'", made.name,
                made.origin);
  const auto other = std::ranges::find(overrides_, made.name, &Override::name);
  if (other != overrides_.end())
    throw Error("Override '{}' is already registered by {}; {} must choose another name", made.name,
                other->origin, made.origin);
  for (const std::type_info* whole : {&typeid(Config), &typeid(ModelSpec), &typeid(TrainerConfig)})
    if (target == *whole)
      throw Error("Override '{}' of {}: {} cannot be overridden; pick the component's Config",
                  made.name, made.origin, made.target);
  for (const std::string& glob : made.options.fqns) {
    try {
      Glob{glob};
    } catch (const Error& error) {
      throw Error("Override '{}' of {}: {}", made.name, made.origin, error.what());
    }
  }
  overrides_.push_back(std::move(made));
}

OverrideRegistry& override_registry() {
  static OverrideRegistry registry;
  return registry;
}

}  // namespace rhea::config
