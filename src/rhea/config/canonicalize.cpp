#include "rhea/config/canonicalize.h"

#include <algorithm>
#include <cctype>

#include "rhea/base/text.h"

namespace rhea::config {
namespace {

class Canonicalizer final : public Visitor {
 public:
  void alias(std::string_view, std::string_view, std::string_view) override {}
  void no_effect(std::string_view, OptionType, std::string_view, std::string_view) override {}

 private:
  void leaf(const FieldInfo& info, Leaf value) override {
    if (info.choices.empty()) return;
    if (auto* text = std::get_if<std::string*>(&value)) spell(info, **text);
    if (auto* text = std::get_if<std::optional<std::string>*>(&value); text && **text)
      spell(info, ***text);
    if (auto* list = std::get_if<std::vector<std::string>*>(&value))
      for (std::string& word : **list) spell(info, word);
  }
  void section(const FieldInfo& info, Config& config) override {
    if (!info.hidden) config.fields(*this);
  }
  void slot(const FieldInfo&, SlotBase& slot) override {
    if (slot) slot.get()->fields(*this);
  }
  void list(const FieldInfo&, ConfigList& list) override {
    for (size_t i = 0; i < list.size(); ++i) list.at(i).fields(*this);
  }

  static void spell(const FieldInfo& info, std::string& word) {
    for (std::string_view choice : info.choices) {
      const bool same = std::ranges::equal(word, choice, [&](char a, char b) {
        if (a == '-') a = '_';
        if (b == '-') b = '_';
        if (!info.any_case) return a == b;
        return std::tolower(static_cast<unsigned char>(a)) ==
               std::tolower(static_cast<unsigned char>(b));
      });
      if (same) {
        word = choice;
        return;
      }
    }
  }
};

void lower(DataloaderConfig& loader) {
  loader.dataset = lower_case(loader.dataset);
  for (DataSourceConfig& source : loader.sources) source.dataset = lower_case(source.dataset);
}

}  // namespace

void canonicalize(TrainerConfig& config) {
  Canonicalizer visitor;
  config.fields(visitor);
  config.validator->dataloader->infinite = config.validator->steps != -1;
  lower(*config.dataloader);
  lower(*config.validator->dataloader);
}

}  // namespace rhea::config
