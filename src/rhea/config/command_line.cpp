#include "rhea/config/command_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "rhea/config/aliases.h"
#include "rhea/config/canonicalize.h"
#include "rhea/config/leaf_text.h"
#include "rhea/config/option_index.h"
#include "rhea/config/option_words.h"

namespace rhea::config {
namespace {

// Sections of torchtitan and its relatives that have no counterpart here.
struct RefusedSection {
  std::string_view name;
  std::string_view reason;
};
constexpr RefusedSection kRefusedSections[] = {
    {"model_spec",
     "is set in code only: choose the model with --module and --config, or in the config function"},
    {"model", "is no section: choose the model with --module and --config"},
    {"job",
     "is no section: use dump_folder, debug.print_config and debug.save_config_file at their own "
     "places"},
    {"experimental", "is no section: outside code comes in through override.imports"},
    {"quantization",
     "has no options: quantization is a converter given in code to the model's registry"},
    {"quantize",
     "has no options: quantization is a converter given in code to the model's registry"},
    {"lora", "has no options: LoRA is a converter given in code to the model's registry"},
    {"fault_tolerance",
     "belongs to TorchFT and is not part of Rhea: restart from a checkpoint instead"},
    {"graph_trainer", "belongs to GraphTrainer and is not part of Rhea: the graph is always built"},
    {"rl", "belongs to reinforcement learning and is not part of Rhea"},
    {"encoder", "belongs to Flux and is not part of Rhea"},
    {"flux", "belongs to Flux and is not part of Rhea"},
};

// override.imports has items like `target={"json": 1, "b": [2, 3]}`: separators inside brackets and
// strings are text.
std::vector<std::string> split_imports(std::string_view text) {
  std::vector<std::string> items;
  std::string item;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\' && i + 1 < text.size()) {
      item += c;
      item += text[++i];
      continue;
    }
    if (c == '"' && depth > 0) quoted = !quoted;
    if (!quoted && (c == '{' || c == '[')) ++depth;
    if (!quoted && (c == '}' || c == ']')) --depth;
    if (depth <= 0 && !quoted && (c == ',' || c == ' ')) {
      if (!item.empty()) items.push_back(std::move(item));
      item.clear();
    } else {
      item += c;
    }
  }
  if (!item.empty()) items.push_back(std::move(item));
  return items;
}

class Applier {
 public:
  Applier(TrainerConfig& config, Report& report)
      : config_(config), report_(report), index_(std::make_unique<OptionIndex>(config)) {}

  std::vector<std::string> run(std::span<const std::string> args, const ImportLoader& load) {
    Words words = split_words(args, *index_, report_);
    if (load) load_imports(words, load);
    // Alternatives first: they decide which options there are.
    for (const UnionWord& word : words.unions) apply(word);
    for (const OptionWord& word : words.options) apply(word);
    resolve_aliases(given_, config_, report_);
    std::vector<std::string> paths;
    for (const auto& [path, value] : given_) paths.push_back(path);
    return paths;
  }

 private:
  // Their files may register alternatives. A word whose files cannot be loaded is taken out.
  void load_imports(Words& words, const ImportLoader& load) {
    std::erase_if(words.options, [&](const OptionWord& word) {
      if (word.path != "override.imports" || !word.value) return false;
      try {
        load(split_imports(*word.value));
        return false;
      } catch (const ExitError&) {
        throw;  // has an exit code of its own
      } catch (const Error& error) {
        report_.add(word.path, *word.value, error.what());
        return true;
      }
    });
    index_ = std::make_unique<OptionIndex>(config_);
  }

  void apply(const UnionWord& word) {
    const Option* option = index_->find(word.section);
    const auto* slot = option ? std::get_if<SlotOption>(&option->kind) : nullptr;
    if (slot && !option->info.alternatives.empty()) {
      std::vector<std::string_view> names;
      for (const Alternative& alternative : option->info.alternatives) {
        names.push_back(alternative.name);
        if (alternative.name != word.alternative) continue;
        if (!give(word.section, word.section, word.text, word.alternative)) return;
        alternative.select(*slot->slot);
        index_ = std::make_unique<OptionIndex>(config_);
        return;
      }
      report_.add(word.section, word.alternative, fmt::format("expected one of: {}", join(names)));
    } else if (option && index_->find(word.section + ".mode")) {
      apply(OptionWord{word.text, word.section + ".mode", word.alternative, true});
    } else {
      report_.add("", "",
                  fmt::format("unexpected word '{}': '{}' is no section with alternatives",
                              word.text, word.section));
    }
  }

  void apply(const OptionWord& word) {
    if (!make_list_item(word)) return;
    bool negated = false;
    if (const Option* flag = find_flag(*index_, word.path, negated))
      return apply_flag(word, *flag, negated);
    const Option* option = index_->find(word.path);
    if (!option) return unknown(word);
    if (const auto* list = std::get_if<ListOption>(&option->kind)) return apply_list(word, *list);
    if (option->info.hidden) return refuse(word);
    if (std::holds_alternative<SectionOption>(option->kind) ||
        std::holds_alternative<SlotOption>(option->kind)) {
      report_.add("", "",
                  fmt::format("{} is a section: its options are written --{}.option value",
                              word.flag, word.path));
      return;
    }
    if (!word.value) {
      report_.add("", "", fmt::format("{} requires a value", word.flag));
      return;
    }
    if (const auto* alias = std::get_if<AliasOption>(&option->kind))
      return apply_alias(word, alias->target);
    if (const auto* none = std::get_if<NoEffectOption>(&option->kind)) {
      if (auto expected = check_text(none->type, *word.value)) return mismatch(word, *expected);
      if (give(word.path, word.path, word.flag, *word.value)) warn_no_effect(*option);
      return;
    }
    set(word, *option, *word.value);
  }

  void set(const OptionWord& word, const Option& option, const std::string& value) {
    if (!give(option.path, word.path, word.flag, value)) return;
    if (option.path == "override.imports") {
      config_.override.imports = split_imports(value);
      return;
    }
    if (auto expected = parse_leaf(std::get<LeafOption>(option.kind).place, value))
      mismatch(word, *expected);
  }

  void apply_flag(const OptionWord& word, const Option& option, bool negated) {
    const Option* target = &option;
    if (const auto* alias = std::get_if<AliasOption>(&option.kind))
      target = index_->find(alias->target);
    const auto* leaf = std::get_if<LeafOption>(&target->kind);
    const bool clears =
        leaf && std::holds_alternative<std::optional<bool>*>(leaf->place) && word.value == "None";
    if (word.value && !clears) {
      const size_t name = option.path.rfind('.') + 1;
      const std::string off = option.path.substr(0, name) + "no_" + option.path.substr(name);
      report_.add(
          "", "",
          fmt::format(
              "{}{}{}: a flag takes no value; write --{} to switch it on, --{} to switch it off",
              word.flag, word.equals_sign ? "=" : " ", *word.value, option.path, off));
      return;
    }
    const std::string value = clears ? "None" : negated ? "false" : "true";
    if (!give(target->path, option.path, word.flag, value)) return;
    if (leaf)
      parse_leaf(leaf->place, value);
    else
      warn_no_effect(*target);
  }

  void apply_alias(const OptionWord& word, const std::string& target_path) {
    int64_t number = 0;
    if (is_converted_alias(word.path)) {
      if (auto expected = parse_leaf(Leaf(&number), *word.value)) return mismatch(word, *expected);
      give(word.path, word.path, word.flag, *word.value);
      return;
    }
    set(word, *index_->find(target_path), *word.value);
  }

  // Lists of structs grow by one when the first index after the end is written.
  bool make_list_item(const OptionWord& word) {
    for (size_t dot = word.path.find('.'); dot != std::string::npos;
         dot = word.path.find('.', dot + 1)) {
      const std::string prefix = word.path.substr(0, dot);
      const Option* option = index_->find(prefix);
      const auto* list = option ? std::get_if<ListOption>(&option->kind) : nullptr;
      if (!list) continue;
      const std::string item = word.path.substr(dot + 1, word.path.find('.', dot + 1) - dot - 1);
      int64_t i = 0;
      if (parse_leaf(Leaf(&i), item) || i < 0 || static_cast<size_t>(i) > list->list->size()) {
        report_.add(
            "", "",
            fmt::format("{}: {} has {} items, so the part after it must be a number from 0 to {}",
                        word.flag, prefix, list->list->size(), list->list->size()));
        return false;
      }
      if (static_cast<size_t>(i) < list->list->size()) continue;
      list->list->append();
      index_ = std::make_unique<OptionIndex>(config_);
    }
    return true;
  }

  void apply_list(const OptionWord& word, const ListOption& option) {
    if (word.value != "") {
      report_.add(
          "", "",
          fmt::format(
              "{} is a list of structs: set one field of one item as --{}.0.field value, or "
              "empty it with --{}=",
              word.flag, word.path, word.path));
      return;
    }
    if (!give(word.path, word.path, word.flag, "")) return;
    option.list->clear();
    index_ = std::make_unique<OptionIndex>(config_);
  }

  // Records the option; false, with a problem, where it is the second time. Only an alias may
  // repeat its primary (or the other way round), and only with the same value.
  bool give(const std::string& path, const std::string& name, const std::string& flag,
            const std::string& value) {
    const auto [it, fresh] = given_.try_emplace(path, Given{name, flag, value});
    const Given& first = it->second;
    if (fresh || (first.name != name && first.value == value)) return true;
    report_.add(path, "",
                fmt::format("given twice: {} {} and {} {}", first.flag, first.value, flag, value));
    return false;
  }

  void mismatch(const OptionWord& word, const std::string& expected) {
    report_.add(word.path, "'" + *word.value + "'", expected);
  }

  void warn_no_effect(const Option& option) {
    report_.warn(fmt::format("{} has no effect: {}", option.path, option.info.meaning));
  }

  void refuse(const OptionWord& word) {
    const std::string section = word.path.substr(0, word.path.find('.'));
    for (const RefusedSection& refused : kRefusedSections)
      if (refused.name == section) {
        report_.add("", "", fmt::format("{}: '{}' {}", word.flag, section, refused.reason));
        return;
      }
    report_.add("", "", fmt::format("{} is set in code only", word.flag));
  }

  void unknown(const OptionWord& word) {
    const std::string section = word.path.substr(0, word.path.find('.'));
    if (std::ranges::find(kRefusedSections, section, &RefusedSection::name) !=
        std::end(kRefusedSections))
      return refuse(word);
    const std::string nearest = nearest_option(*index_, word.path);
    report_.add("", "",
                nearest.empty()
                    ? fmt::format("unknown option {}; --help lists all", word.flag)
                    : fmt::format("unknown option {}; did you mean --{}?", word.flag, nearest));
  }

  TrainerConfig& config_;
  Report& report_;
  std::unique_ptr<OptionIndex> index_;
  GivenOptions given_;
};

// Takes `--name value` and `--name=value` out of args. None where absent, empty where broken; the
// latter is reported.
std::optional<std::string> take(std::vector<std::string>& args, const std::string& name,
                                Report& report) {
  const std::string flag = "--" + name;
  std::optional<std::string> found;
  for (auto it = args.begin(); it != args.end();) {
    std::string value;
    auto end = it + 1;
    if (it->starts_with(flag + "=")) {
      value = it->substr(flag.size() + 1);
    } else if (*it != flag) {
      ++it;
      continue;
    } else if (end != args.end() && !end->starts_with("--")) {
      value = *end++;
    }
    it = args.erase(it, end);
    if (value.empty())
      report.add("", "", flag + " requires a value");
    else if (found)
      report.add("", "", fmt::format("{} given twice: {} and {}", flag, *found, value));
    if (!found || found->empty()) found = value;
  }
  return found;
}

}  // namespace

std::vector<std::string> apply_options(std::span<const std::string> args, TrainerConfig& config,
                                       Report& report, const ImportLoader& load) {
  auto given = Applier(config, report).run(args, load);
  canonicalize(config);
  return given;
}

CommandLine parse_command_line(std::span<const std::string> args, const ConfigRegistry& registry) {
  CommandLine line;
  Report& report = line.report;
  std::vector<std::string> rest;
  for (const std::string& word : args) {
    if (word == "--help" || word == "-h")
      line.help = true;
    else
      rest.push_back(word);
  }
  const auto module = take(rest, "module", report);
  const auto function = take(rest, "config", report);
  const std::string example = "is required. Example: --module llama3 --config llama3_debugmodel";
  const bool needs_function = !function && !line.help;
  if (!module && !line.help) report.add("", "", "--module " + example);
  if (!module && needs_function) report.add("", "", "--config " + example);
  line.module = module.value_or("");
  line.function = function.value_or("");
  if (!line.module.empty()) {
    try {
      registry.functions(line.module);
      if (needs_function)
        report.add("", "",
                   fmt::format("--config {}. Available config functions of {}: {}", example,
                               line.module, registry.names_of_functions(line.module)));
      if (!line.function.empty()) {
        line.config = registry.find(line.module, line.function).make();
        line.has_recipe = true;
      }
    } catch (const ExitError&) {
      throw;  // has an exit code of its own
    } catch (const Error& error) {
      report.add("", "", error.what());
    }
  }
  line.given = apply_options(rest, line.config, report, registry.import_loader());
  return line;
}

}  // namespace rhea::config
