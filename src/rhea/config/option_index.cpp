#include "rhea/config/option_index.h"

#include <algorithm>

#include "rhea/base/text.h"

namespace rhea::config {
namespace {

class Indexer final : public Visitor {
 public:
  explicit Indexer(std::vector<Option>& options) : options_(options) {}

  void alias(std::string_view name, std::string_view target, std::string_view meaning) override {
    FieldInfo info;
    info.name = name;
    info.meaning = meaning;
    add(info, AliasOption{std::string(target)});
  }
  void no_effect(std::string_view name, OptionType type, std::string_view default_value,
                 std::string_view reason) override {
    FieldInfo info;
    info.name = name;
    info.meaning = reason;
    add(info, NoEffectOption{type, std::string(default_value)});
  }

 private:
  void leaf(const FieldInfo& info, Leaf value) override { add(info, LeafOption{value}); }
  void section(const FieldInfo& info, Config& config) override {
    add(info, SectionOption{});
    if (!info.hidden) enter(std::string(info.name), config);
  }
  void slot(const FieldInfo& info, SlotBase& slot) override {
    add(info, SlotOption{&slot});
    if (!info.hidden && slot) enter(std::string(info.name), *slot.get());
  }
  void list(const FieldInfo& info, ConfigList& list) override {
    add(info, ListOption{list.reference()});
    if (info.hidden) return;
    for (size_t i = 0; i < list.size(); ++i)
      enter(std::string(info.name) + "." + std::to_string(i), list.at(i));
  }

  std::string path_of(std::string_view name) const { return prefix_ + std::string(name); }
  void add(const FieldInfo& info, decltype(Option::kind) kind) {
    options_.push_back({path_of(info.name), info, std::move(kind)});
  }
  void enter(const std::string& name, Config& config) {
    const std::string parent = prefix_;
    prefix_ = path_of(name) + ".";
    config.fields(*this);
    prefix_ = parent;
  }

  std::vector<Option>& options_;
  std::string prefix_;
};

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('.') + 1); }

bool takes_value(const Option& option) {
  return std::holds_alternative<LeafOption>(option.kind) ||
         std::holds_alternative<AliasOption>(option.kind) ||
         std::holds_alternative<NoEffectOption>(option.kind);
}

}  // namespace

OptionIndex::OptionIndex(Config& root) {
  Indexer indexer(options_);
  root.fields(indexer);
  for (size_t i = 0; i < options_.size(); ++i) by_path_.emplace(options_[i].path, i);
}

const Option* OptionIndex::find(const std::string& path) const {
  const auto it = by_path_.find(path);
  return it == by_path_.end() ? nullptr : &options_[it->second];
}

std::string nearest_option(const OptionIndex& index, const std::string& path) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, path.size() / 3) + 1;
  for (const Option& option : index.options()) {
    if (!takes_value(option)) continue;
    // The right name in the wrong section (or without one) beats a similar spelling.
    const size_t distance =
        last_part(option.path) == last_part(path) ? 1 : edit_distance(path, option.path);
    if (distance < best_distance) {
      best_distance = distance;
      best = option.path;
    }
  }
  return best;
}

}  // namespace rhea::config
