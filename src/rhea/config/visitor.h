// Visitor: what Config::fields() talks to. One call per member: v("name", member, "meaning",
// attributes...).
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <variant>
#include <vector>

#include "rhea/config/config.h"

namespace rhea {

// Leaf types of a config tree, as pointers into it.
using Leaf = std::variant<bool*, int64_t*, double*, std::string*, std::optional<bool>*,
                          std::optional<int64_t>*, std::optional<double>*,
                          std::optional<std::string>*, std::vector<int64_t>*, std::vector<double>*,
                          std::vector<std::string>*, std::optional<std::vector<double>>*,
                          std::optional<std::vector<std::vector<std::string>>>*>;

// One choice of a slot: the word of `--section:Word` and the config that it puts there.
struct Alternative {
  std::string_view name;      // the word
  void (*select)(SlotBase&);  // puts the config into the slot
};

// What is known about a field besides its value. Texts are literals of fields(), so views are safe
// to keep.
struct FieldInfo {
  std::string_view name;     // the last part of its path
  std::string_view meaning;  // its line of help
  // Legal words of a string or of a list's items; empty = any.
  std::vector<std::string_view> choices;
  bool any_case = false;  // choices are compared without regard to case
  // Bounds of a number, or of the numbers of a list.
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();  // inclusive
  bool above_min = false;                 // the value must be greater than min, not equal
  bool hidden = false;                    // set in code only: in the JSON, not on the command line
  bool required = false;                  // of a slot: it must not be empty
  std::vector<Alternative> alternatives;  // of a slot: what `--section:Word` may choose
};

// Attributes, the optional tail of v(...): types with apply(FieldInfo&) const.

// The legal words: one_of{"none", "full"}.
struct one_of {
  std::vector<std::string_view> words;  // views of literals
  // The words in the order of the help.
  one_of(std::initializer_list<std::string_view> list) : words(list) {}
  // Sets FieldInfo::choices.
  void apply(FieldInfo& info) const { info.choices = words; }
};
// A number, or each of a list, from `value` on.
struct at_least {
  double value;  // the least legal one
  // Sets FieldInfo::min.
  void apply(FieldInfo& info) const { info.min = value; }
};
// A number above `value`.
struct greater_than {
  double value;  // the bound, not legal itself
  // Sets FieldInfo::min and above_min.
  void apply(FieldInfo& info) const { info.min = value, info.above_min = true; }
};
// A number from `low` to `high`, both included.
struct between {
  double low, high;  // the bounds
  // Sets FieldInfo::min and max.
  void apply(FieldInfo& info) const { info.min = low, info.max = high; }
};
// The type of any_case.
struct AnyCase {
  // Sets FieldInfo::any_case.
  void apply(FieldInfo& info) const { info.any_case = true; }
};
// Words are compared without regard to case.
inline constexpr AnyCase any_case;
// The type of hidden.
struct Hidden {
  // Sets FieldInfo::hidden.
  void apply(FieldInfo& info) const { info.hidden = true; }
};
// Set in code only: in the JSON, not on the command line.
inline constexpr Hidden hidden;
// The type of required.
struct Required {
  // Sets FieldInfo::required.
  void apply(FieldInfo& info) const { info.required = true; }
};
// Of a slot: it must not be empty.
inline constexpr Required required;

// A list of configs (plain or in slots) for code that does not know their type.
class ConfigList {
 public:
  virtual ~ConfigList() = default;
  // Number of items.
  virtual size_t size() const = 0;
  // Item i, from 0.
  virtual Config& at(size_t i) = 0;
  virtual SlotBase* slot(size_t i) = 0;  // null where the items are plain structs
  virtual void append() = 0;             // one item of defaults
  virtual void clear() = 0;              // removes all items
  // The same list as an object that outlives the visit.
  virtual std::shared_ptr<ConfigList> reference() = 0;
};

// Types of options that are accepted and do nothing.
enum class OptionType { boolean, integer, number, text };

// Told every field of a config: the command line, the help, the JSON and the overrides are
// visitors.
class Visitor {
 public:
  virtual ~Visitor() = default;

  // `name` is the last part of the option's path, `meaning` its line of help. Members are leaves,
  // configs, slots of configs, and vectors of the last two.
  template <class T, class... Attributes>
  void operator()(std::string_view name, T& member, std::string_view meaning,
                  const Attributes&... attributes) {
    FieldInfo info;
    info.name = name;
    info.meaning = meaning;
    (attributes.apply(info), ...);
    if constexpr (std::derived_from<T, Config>) {
      section(info, member);
    } else if constexpr (std::derived_from<T, SlotBase>) {
      slot(info, member);
    } else if constexpr (is_config_list<T>) {
      ListOf<T> items(member);
      list(info, items);
    } else {
      leaf(info, Leaf(&member));
    }
  }

  // A slot whose config has no section of its own: its fields are members of the config around it.
  // `name` is what overrides call the node.
  void inlined(std::string_view name, SlotBase& member) { flat(name, member); }

  // A table that fields() takes names from, set in code only. Visited before the fields that it
  // names.
  template <class T>
  void names(const T*& table) {
    const void* place = table;
    name_table(typeid(T), place);
    table = static_cast<const T*>(place);
  }

  // A second name of the option `target` (full path); output shows the target only.
  virtual void alias(std::string_view name, std::string_view target, std::string_view meaning) = 0;
  // An option of torchtitan that has nothing to do here: accepted with one warning that gives
  // `reason`.
  virtual void no_effect(std::string_view name, OptionType type, std::string_view default_value,
                         std::string_view reason) = 0;

 protected:
  // What operator() makes of a member, by its type: a leaf, a config, a slot of one, a list of
  // either.
  virtual void leaf(const FieldInfo& info, Leaf value) = 0;
  virtual void section(const FieldInfo& info, Config& config) = 0;
  virtual void slot(const FieldInfo& info, SlotBase& slot) = 0;
  virtual void list(const FieldInfo& info, ConfigList& list) = 0;
  // What inlined() makes of a slot: its fields, where it holds a config.
  virtual void flat(std::string_view, SlotBase& slot) {
    if (slot) slot.get()->fields(*this);
  }
  // What names() makes of a table: `place` may be pointed at another one of that type.
  virtual void name_table(const std::type_info&, const void*&) {}

 private:
  template <class T>
  struct Item {
    static constexpr bool is_config = false;
  };
  template <class T>
  struct Item<std::vector<T>> {
    static constexpr bool is_config =
        std::derived_from<T, Config> || std::derived_from<T, SlotBase>;
  };
  template <class T>
  static constexpr bool is_config_list = Item<T>::is_config;

  template <class V>
  class ListOf final : public ConfigList {
   public:
    explicit ListOf(V& items) : items_(items) {}
    size_t size() const override { return items_.size(); }
    Config& at(size_t i) override {
      if constexpr (std::derived_from<typename V::value_type, SlotBase>)
        return *items_[i];
      else
        return items_[i];
    }
    SlotBase* slot(size_t i) override {
      if constexpr (std::derived_from<typename V::value_type, SlotBase>)
        return &items_[i];
      else
        return (void)i, nullptr;
    }
    void append() override { items_.emplace_back(); }
    void clear() override { items_.clear(); }
    std::shared_ptr<ConfigList> reference() override { return std::make_shared<ListOf>(items_); }

   private:
    V& items_;
  };
};

}  // namespace rhea
