#include "rhea/config/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <set>

#include "rhea/config/leaf_text.h"
#include "rhea/config/option_index.h"

namespace rhea::config {
namespace {

struct Row {
  std::string name, type, value, meaning;
};
struct Group {
  std::string title;
  std::vector<Row> rows;
};

std::string shown(const std::string& value) { return value.empty() ? "\"\"" : value; }

// Items are added to empty lists, so that their fields have a line. Returns the paths of those
// lists.
std::set<std::string> fill_empty_lists(TrainerConfig& config) {
  std::set<std::string> filled;
  const OptionIndex index(config);
  for (const Option& option : index.options()) {
    const auto* list = std::get_if<ListOption>(&option.kind);
    if (!list || option.info.hidden || list->list->size() > 0) continue;
    list->list->append();
    filled.insert(option.path);
  }
  return filled;
}

std::string option_name(const std::string& path, const std::set<std::string>& filled) {
  for (const std::string& list : filled)
    if (path.starts_with(list + ".0.")) return "--" + list + ".N" + path.substr(list.size() + 2);
  return "--" + path;
}

Row row_of(const Option& option, const std::string& name) {
  Row row{name, "", "", std::string(option.info.meaning)};
  if (const auto* leaf = std::get_if<LeafOption>(&option.kind)) {
    row.type = leaf_type(leaf->place);
    row.value = shown(leaf_text(leaf->place));
    if (!option.info.choices.empty())
      row.meaning += fmt::format(" [{}]", fmt::join(option.info.choices, "|"));
  } else if (const auto* alias = std::get_if<AliasOption>(&option.kind)) {
    row.type = "alias";
    row.value = "-";
    row.meaning += fmt::format(" (sets {})", alias->target);
  } else if (const auto* none = std::get_if<NoEffectOption>(&option.kind)) {
    constexpr const char* names[] = {"flag", "int", "float", "text"};
    row.type = names[static_cast<int>(none->type)];
    row.value = none->default_value;
    row.meaning = "no effect: " + row.meaning;
  }
  return row;
}

void print_rows(const std::vector<Row>& rows, std::ostream& out) {
  size_t name = 0, type = 0, value = 0;
  for (const Row& row : rows) {
    name = std::max(name, row.name.size());
    type = std::max(type, row.type.size());
    value = std::max(value, row.value.size());
  }
  for (const Row& row : rows)
    out << fmt::format("  {:<{}}  {:<{}}  {:<{}}  {}\n", row.name, name, row.type, type, row.value,
                       value, row.meaning);
}

}  // namespace

void print_options(const TrainerConfig& config, std::ostream& out) {
  TrainerConfig copy = config;
  const std::set<std::string> filled = fill_empty_lists(copy);
  std::vector<Group> groups = {{"general", {}}};
  const OptionIndex index(copy);
  for (const Option& option : index.options()) {
    if (option.info.hidden) continue;
    const bool heading = std::holds_alternative<SectionOption>(option.kind) ||
                         std::holds_alternative<SlotOption>(option.kind) ||
                         std::holds_alternative<ListOption>(option.kind);
    if (!heading) {
      const bool general = option.path.find('.') == std::string::npos;
      (general ? groups.front() : groups.back())
          .rows.push_back(row_of(option, option_name(option.path, filled)));
    } else if (option.path.find('.') == std::string::npos) {
      Group group{fmt::format("{}: {}", option.path, option.info.meaning), {}};
      if (!option.info.alternatives.empty()) {
        group.title += "; choose with";
        for (const Alternative& alternative : option.info.alternatives)
          group.title += fmt::format(" {}:{}", option.path, alternative.name);
      }
      groups.push_back(std::move(group));
    }
  }
  out << "Options: --name value or --name=value; - and _ are alike; flags --s.flag and "
         "--s.no_flag; lists a,b,c;\n"
         "`?` = may be None. Columns: name, type, default, meaning.\n";
  for (const Group& group : groups) {
    out << '\n' << group.title << '\n';
    print_rows(group.rows, out);
  }
}

void print_modules(const ConfigRegistry& registry, std::ostream& out) {
  size_t width = 0;
  for (const std::string& module : registry.modules())
    for (const ConfigEntry& entry : registry.functions(module))
      width = std::max(width, entry.name.size());
  for (const std::string& module : registry.modules()) {
    out << module << '\n';
    for (const ConfigEntry& entry : registry.functions(module))
      out << fmt::format("  {:<{}}  {}\n", entry.name, width, entry.help);
  }
}

}  // namespace rhea::config
