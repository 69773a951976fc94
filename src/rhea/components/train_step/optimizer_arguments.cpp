// The values of an optimizer's arguments.
#include "rhea/components/train_step/optimizer_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "rhea/config/leaf_text.h"
#include "rhea/config/option_index.h"

namespace rhea::train_step {
namespace {

using config::Problem;

std::string_view name_of(std::string_view entry) { return entry.substr(0, entry.find('=')); }

std::vector<std::string>::const_iterator find_more(const OptimizerKwargs& kwargs,
                                                   std::string_view name) {
  return std::ranges::find_if(kwargs.more,
                              [&](const std::string& entry) { return name_of(entry) == name; });
}

// Calls visit(name, place) for each field of OptimizerKwargs but `more`.
template <class F>
void for_each_argument(OptimizerKwargs& kwargs, F&& visit) {
  const config::OptionIndex index(kwargs);
  for (const auto& option : index.options())
    if (const auto* leaf = std::get_if<config::LeafOption>(&option.kind); option.path != "more")
      visit(option.path, leaf->place);
}

bool is_set(const Leaf& place) { return config::leaf_text(place) != "None"; }

}  // namespace

OptimizerKwargs with_defaults(const Optimizer& optimizer, const OptimizerKwargs& given) {
  OptimizerKwargs made = given;
  OptimizerKwargs defaults = optimizer.defaults;
  const config::OptionIndex places(defaults);
  for_each_argument(made, [&](const std::string& name, const Leaf& place) {
    if (is_set(place)) return;
    const auto& from = std::get<config::LeafOption>(places.find(name)->kind).place;
    std::visit([&](auto* to) { *to = *std::get<decltype(to)>(from); }, place);
  });
  for (const std::string& entry : defaults.more)
    if (find_more(made, name_of(entry)) == made.more.end()) made.more.push_back(entry);
  return made;
}

void check_group(const ParamGroup& group, const std::string& path, std::vector<Problem>& problems) {
  const Optimizer* optimizer = optimizers().find(group.optimizer_name);
  if (optimizer == nullptr) {
    problems.push_back({path + ".optimizer_name", "'" + group.optimizer_name + "'",
                        fmt::format("Optimizer {} not added. Optimizers: {}", group.optimizer_name,
                                    joined(optimizers().names())),
                        true});
    return;
  }
  OptimizerKwargs defaults = optimizer->defaults, given = group.optimizer_kwargs;
  std::vector<std::string> known, unknown;
  const config::OptionIndex places(defaults);
  for_each_argument(given, [&](const std::string& name, const Leaf& place) {
    if (is_set(std::get<config::LeafOption>(places.find(name)->kind).place))
      known.push_back(name);
    else if (is_set(place))
      unknown.push_back(name);
  });
  for (const std::string& entry : defaults.more) known.emplace_back(name_of(entry));
  for (const std::string& entry : given.more)
    if (find_more(defaults, name_of(entry)) == defaults.more.end() ||
        entry.find('=') == std::string::npos)
      unknown.push_back("more " + entry);
  const std::string kwargs = path + ".optimizer_kwargs.";
  for (const std::string& name : unknown)
    problems.push_back(
        {kwargs + name, "",
         fmt::format("{} has no such argument; it has: {}", optimizer->name, joined(known)), true});
  if (unknown.empty() && optimizer->check)
    optimizer->check(with_defaults(*optimizer, given),
                     [&](std::string_view argument, std::string value, std::string reason) {
                       problems.push_back({kwargs + std::string(argument), std::move(value),
                                           std::move(reason), true});
                     });
}

std::string describe(const OptimizerKwargs& kwargs) {
  OptimizerKwargs copy = kwargs;
  std::string text;
  const auto append = [&](std::string_view name, std::string_view value) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name, value);
  };
  for_each_argument(copy, [&](const std::string& name, const Leaf& place) {
    if (!is_set(place)) return;
    const auto* list = std::get_if<std::optional<std::vector<double>>*>(&place);
    append(name, list == nullptr ? config::leaf_text(place)
                                 : fmt::format("({})", fmt::join(***list, ", ")));
  });
  for (const std::string& entry : copy.more)
    append(name_of(entry), std::string_view(entry).substr(name_of(entry).size() + 1));
  return "{" + text + "}";
}

}  // namespace rhea::train_step
