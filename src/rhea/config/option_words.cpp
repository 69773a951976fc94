#include "rhea/config/option_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "rhea/config/leaf_text.h"

namespace rhea::config {
namespace {

std::string with_underscores(std::string_view text) {
  std::string out(text);
  std::ranges::replace(out, '-', '_');
  return out;
}

bool is_option(const std::string& word) { return word.starts_with("--") && word.size() > 2; }

std::optional<UnionWord> as_union(const std::string& word) {
  const size_t colon = word.find(':');
  if (colon == 0 || colon == std::string::npos || colon + 1 == word.size()) return std::nullopt;
  return UnionWord{word, with_underscores(word.substr(0, colon)), word.substr(colon + 1)};
}

bool is_flag_option(const Option& option, const OptionIndex& index) {
  if (const auto* leaf = std::get_if<LeafOption>(&option.kind)) return is_flag(leaf->place);
  if (const auto* none = std::get_if<NoEffectOption>(&option.kind))
    return none->type == OptionType::boolean;
  if (const auto* alias = std::get_if<AliasOption>(&option.kind)) {
    const Option* target = index.find(alias->target);
    return target && is_flag_option(*target, index);
  }
  return false;
}

}  // namespace

const Option* find_flag(const OptionIndex& index, const std::string& path, bool& negated) {
  negated = false;
  if (const Option* option = index.find(path))
    return is_flag_option(*option, index) ? option : nullptr;
  const size_t name = path.rfind('.') + 1;
  if (path.compare(name, 3, "no_") != 0) return nullptr;
  const Option* option = index.find(path.substr(0, name) + path.substr(name + 3));
  if (!option || !is_flag_option(*option, index)) return nullptr;
  negated = true;
  return option;
}

Words split_words(std::span<const std::string> args, const OptionIndex& index, Report& report) {
  Words words;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& word = args[i];
    if (!is_option(word)) {
      if (auto choice = as_union(word))
        words.unions.push_back(*choice);
      else
        report.add(
            "", "",
            fmt::format("unexpected word '{}': options are written --section.option value", word));
      continue;
    }
    OptionWord option;
    const size_t equals = word.find('=');
    option.flag = word.substr(0, equals);
    option.path = with_underscores(option.flag.substr(2));
    option.equals_sign = equals != std::string::npos;
    bool negated = false;
    const bool known = index.find(option.path) != nullptr;
    if (option.equals_sign) {
      option.value = word.substr(equals + 1);
    } else if (find_flag(index, option.path, negated)) {
      // A flag's name is all of it, but `--s.flag false` deserves the same hint as
      // `--s.flag=false`.
      if (i + 1 < args.size() && (args[i + 1] == "true" || args[i + 1] == "false"))
        option.value = args[++i];
    } else if (i + 1 < args.size() && !is_option(args[i + 1]) &&
               (known || !as_union(args[i + 1]))) {
      option.value = args[++i];
      // The one option whose items may also be separated by spaces.
      if (option.path == "override.imports")
        while (i + 1 < args.size() && !is_option(args[i + 1])) *option.value += " " + args[++i];
    }
    words.options.push_back(std::move(option));
  }
  return words;
}

}  // namespace rhea::config
