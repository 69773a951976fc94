// OptionIndex: every option of a config tree by its path, with the place that it sets.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "rhea/config/visitor.h"

namespace rhea::config {

struct LeafOption {
  Leaf place;
};
struct AliasOption {
  std::string target;
};
struct NoEffectOption {
  OptionType type;
  std::string default_value;
};
struct SectionOption {};
struct SlotOption {
  SlotBase* slot;
};
struct ListOption {
  std::shared_ptr<ConfigList> list;  // shared: options are copied when help sorts them
};

struct Option {
  std::string path;
  FieldInfo info;
  std::variant<LeafOption, AliasOption, NoEffectOption, SectionOption, SlotOption, ListOption> kind;
};

// Places point into the tree, which must outlive the index and keep its lists and slots as they
// are.
class OptionIndex {
 public:
  explicit OptionIndex(Config& root);

  // Null where there is no such path.
  const Option* find(const std::string& path) const;
  // In the order of fields(). Hidden sections are not entered.
  const std::vector<Option>& options() const { return options_; }

 private:
  std::vector<Option> options_;
  std::map<std::string, size_t, std::less<>> by_path_;
};

// The existing option that a user who typed `path` most likely meant; empty where nothing is near.
std::string nearest_option(const OptionIndex& index, const std::string& path);

}  // namespace rhea::config
