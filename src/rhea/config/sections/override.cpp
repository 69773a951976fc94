#include "rhea/config/sections/override.h"

#include <fmt/ranges.h>

#include "rhea/config/json.h"
#include "rhea/config/leaf_text.h"

namespace rhea {

NamedValue::NamedValue(std::string_view key, bool value)
    : name(key), json(value ? "true" : "false") {}

NamedValue::NamedValue(std::string_view key, double value)
    : name(key), json(config::double_text(value)) {}

NamedValue::NamedValue(std::string_view key, std::string_view value)
    : name(key), json(config::json_string(value)) {}

NamedValue::NamedValue(std::string_view key, const std::vector<int64_t>& value)
    : name(key), json(fmt::format("[{}]", fmt::join(value, ", "))) {}

NamedValue::NamedValue(std::string_view key, const std::vector<std::string>& value) : name(key) {
  std::vector<std::string> items;
  for (const std::string& item : value) items.push_back(config::json_string(item));
  json = fmt::format("[{}]", fmt::join(items, ", "));
}

OverrideImport::OverrideImport(std::string_view target, std::initializer_list<NamedValue> arguments)
    : std::string(target) {
  std::vector<std::string> members;
  for (const NamedValue& argument : arguments)
    members.push_back(fmt::format("{}: {}", config::json_string(argument.name), argument.json));
  append(fmt::format("={{{}}}", fmt::join(members, ", ")));
}

}  // namespace rhea
