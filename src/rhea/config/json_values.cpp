#include "rhea/config/json_values.h"

#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "rhea/base/json.h"
#include "rhea/config/leaf_text.h"
#include "rhea/config/rules.h"

namespace rhea::config {
namespace {

using nlohmann::json;

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

// Stores the value; false where it is of another type.
template <class T>
bool store(const json& value, T& place) {
  if constexpr (IsOptional<T>::value) {
    if (value.is_null()) return place.reset(), true;
    typename T::value_type item{};
    if (!store(value, item)) return false;
    place = item;
  } else if constexpr (IsVector<T>::value) {
    if (!value.is_array()) return false;
    T items;
    for (const json& element : value) {
      typename T::value_type item{};
      if (!store(element, item)) return false;
      items.push_back(std::move(item));
    }
    place = std::move(items);
  } else {
    if constexpr (std::same_as<T, bool>) {
      if (!value.is_boolean()) return false;
    } else if constexpr (std::same_as<T, int64_t>) {
      if (!value.is_number_integer() ||
          (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX))
        return false;
    } else if constexpr (std::same_as<T, double>) {
      if (!value.is_number()) return false;
    } else if (!value.is_string()) {
      return false;
    }
    value.get_to(place);
  }
  return true;
}

class LeafFinder final : public Visitor {
 public:
  void alias(std::string_view, std::string_view, std::string_view) override {}
  void no_effect(std::string_view, OptionType, std::string_view, std::string_view) override {}

  std::map<std::string, Leaf, std::less<>> leaves;

 private:
  void leaf(const FieldInfo& info, Leaf value) override { leaves.emplace(info.name, value); }
  void section(const FieldInfo&, Config&) override {}
  void slot(const FieldInfo&, SlotBase&) override {}
  void list(const FieldInfo&, ConfigList&) override {}
};

LeafFinder leaves_of(Config& config) {
  LeafFinder finder;
  config.fields(finder);
  return finder;
}

// Throws Error with the place in the text where it is no JSON, or names a member twice.
json parsed(const std::string& text, const std::string& origin) {
  std::set<std::string> names;
  const auto refuse_second = [&](int depth, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::key && depth == 1 &&
        !names.insert(value.get<std::string>()).second)
      throw Error("{}: argument '{}' is given twice in {}", origin, value.get<std::string>(), text);
    return true;
  };
  try {
    return json::parse(text, refuse_second);
  } catch (const json::parse_error& error) {
    throw Error("{} must be a JSON object, got {}: {}", origin, text, json_reason(error.what()));
  }
}

}  // namespace

std::string field_list(Config& config) {
  std::vector<std::string> names;
  for (const auto& [name, leaf] : leaves_of(config).leaves)
    names.push_back(fmt::format("{}: {}", name, leaf_type(leaf)));
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

void set_fields(Config& config, const std::string& text, const std::string& origin) {
  check_json_depth(text, origin);
  const json object = parsed(text, origin);
  if (!object.is_object()) throw Error("{} must be a JSON object, got {}", origin, text);
  const LeafFinder finder = leaves_of(config);
  for (const auto& [name, value] : object.items()) {
    const auto at = finder.leaves.find(name);
    if (at == finder.leaves.end())
      throw Error("{}: unknown argument '{}'; accepted: {}", origin, name, field_list(config));
    const bool stored = std::visit([&](auto* place) { return store(value, *place); }, at->second);
    if (!stored)
      throw Error("{}: argument '{}' must be {}, got {}; accepted: {}", origin, name,
                  leaf_type(at->second), value.dump(), field_list(config));
  }
  Report report;
  check_fields(config, report);
  if (!report.ok()) throw Error("{}: {}", origin, to_string(report.problems.front()));
}

std::string json_members(const std::string& text) {
  std::vector<std::string> members;
  const json object = parse_json(text);
  for (const auto& [name, value] : object.items())
    members.push_back(
        fmt::format("{}={}", name, value.is_string() ? value.get<std::string>() : value.dump()));
  return fmt::format("{}", fmt::join(members, ", "));
}

}  // namespace rhea::config
