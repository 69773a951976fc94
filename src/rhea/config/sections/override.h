// Section `override`: which replacements of config nodes are active.
#pragma once
#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/config/visitor.h"

namespace rhea {

// An argument of an override, or a field that derive() sets: {"block", 256}.
struct NamedValue {
  // A value of each type that fields have.
  NamedValue(std::string_view key, bool value);
  NamedValue(std::string_view key, double value);
  NamedValue(std::string_view key, std::string_view value);
  NamedValue(std::string_view key, const char* value) : NamedValue(key, std::string_view(value)) {}
  NamedValue(std::string_view key, const std::vector<int64_t>& value);
  NamedValue(std::string_view key, const std::vector<std::string>& value);
  // An integer of any width.
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  NamedValue(std::string_view key, T value) : name(key), json(std::to_string(value)) {}

  std::string name;  // of the argument or field
  std::string json;  // the value as JSON text
};

// An entry of override.imports: a name, or {name, {{"block", 256}}}, which is name={"block": 256}.
struct OverrideImport : std::string {
  // Without arguments.
  OverrideImport(const char* target) : std::string(target) {}             // NOLINT: implicit
  OverrideImport(std::string target) : std::string(std::move(target)) {}  // NOLINT: implicit
  // With arguments, as target={"json": 1}.
  OverrideImport(std::string_view target, std::initializer_list<NamedValue> arguments);
};

// The entries as the command line spells them: override.imports of a recipe.
class OverrideImports : public std::vector<std::string> {
 public:
  OverrideImports() = default;
  // {"my_rope", {"my_kernel", {{"block", 256}}}}.
  OverrideImports(std::initializer_list<OverrideImport> entries)
      : std::vector<std::string>(entries.begin(), entries.end()) {}
  // Entries that are spelled so already.
  OverrideImports(std::vector<std::string> entries)  // NOLINT: implicit
      : std::vector<std::string>(std::move(entries)) {}
};

// The overrides of a run.
struct OverrideConfig : Config {
  OverrideImports imports;
  // Names of those that replaced something, in the order of the tree: written by
  // apply_overrides(), which does its work once.
  std::vector<std::string> active;
  bool applied = false;  // whether apply_overrides() has run

  void fields(Visitor& v) override {
    v("imports", imports,
      "files or names of overrides, separated by spaces or commas; target={\"json\": 1} has "
      "arguments");
    if (!active.empty()) v("active", active, "overrides that replaced something", hidden);
  }
};

}  // namespace rhea
