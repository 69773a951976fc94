#include "rhea/config/derive.h"

#include <fmt/ranges.h>

#include <map>
#include <optional>
#include <typeindex>

#include "rhea/config/json.h"
#include "rhea/config/json_values.h"

namespace rhea::config {
namespace {

// Tables of names, first: they decide what the fields are called.
class TableVisitor final : public Visitor {
 public:
  explicit TableVisitor(const std::map<std::type_index, const void*>* given = nullptr)
      : given_(given) {}
  void alias(std::string_view, std::string_view, std::string_view) override {}
  void no_effect(std::string_view, OptionType, std::string_view, std::string_view) override {}

  std::map<std::type_index, const void*> tables;

 private:
  void leaf(const FieldInfo&, Leaf) override {}
  void section(const FieldInfo&, Config&) override {}
  void slot(const FieldInfo&, SlotBase&) override {}
  void list(const FieldInfo&, ConfigList&) override {}
  void flat(std::string_view, SlotBase&) override {}
  void name_table(const std::type_info& type, const void*& table) override {
    if (given_ != nullptr) {
      if (const auto at = given_->find(type); at != given_->end()) table = at->second;
    }
    tables.emplace(type, table);
  }

  const std::map<std::type_index, const void*>* given_;
};

// Places of the fields of one config by name.
class FieldFinder final : public Visitor {
 public:
  using Field = std::variant<Leaf, Config*, SlotBase*, std::shared_ptr<ConfigList>>;

  explicit FieldFinder(Config& config) { config.fields(*this); }
  void alias(std::string_view, std::string_view, std::string_view) override {}
  void no_effect(std::string_view, OptionType, std::string_view, std::string_view) override {}

  std::vector<std::pair<std::string, Field>> fields;
  const Field* find(const std::string& name) const {
    for (const auto& [key, field] : fields)
      if (key == name) return &field;
    return nullptr;
  }

 private:
  void leaf(const FieldInfo& info, Leaf value) override { fields.emplace_back(info.name, value); }
  void section(const FieldInfo& info, Config& config) override {
    fields.emplace_back(info.name, &config);
  }
  void slot(const FieldInfo& info, SlotBase& slot) override {
    fields.emplace_back(info.name, &slot);
  }
  void list(const FieldInfo& info, ConfigList& list) override {
    fields.emplace_back(info.name, list.reference());
  }
  void flat(std::string_view name, SlotBase& slot) override { fields.emplace_back(name, &slot); }
};

class Copier {
 public:
  Copier(const Config& to, const Config& from) : to_(to), from_(from) {}

  void copy(const std::string& name, const FieldFinder::Field& to,
            const FieldFinder::Field& from) const {
    if (to.index() != from.index()) mismatch(name, "");
    if (const auto* leaf = std::get_if<Leaf>(&to)) {
      const Leaf& source = std::get<Leaf>(from);
      if (leaf->index() != source.index()) mismatch(name, "");
      std::visit([&](auto* place) { *place = *std::get<decltype(place)>(source); }, *leaf);
    } else if (Config* const* config = std::get_if<Config*>(&to)) {
      copy_plain(name, **config, *std::get<Config*>(from));
    } else if (SlotBase* const* slot = std::get_if<SlotBase*>(&to)) {
      fill(name, **slot, *std::get<SlotBase*>(from));
    } else {
      copy_list(name, *std::get<std::shared_ptr<ConfigList>>(to),
                *std::get<std::shared_ptr<ConfigList>>(from));
    }
  }

 private:
  [[noreturn]] void mismatch(const std::string& name, const std::string& detail) const {
    throw Error("derive(): field '{}' of {} has another type than that of {}{}", name,
                type_name(to_), type_name(from_), detail.empty() ? "" : ": " + detail);
  }
  void copy_plain(const std::string& name, Config& to, Config& from) const {
    if (typeid(to) != typeid(from)) mismatch(name, "");
    copy_fields(to, from);
  }
  void fill(const std::string& name, SlotBase& to, const SlotBase& from) const {
    if (!from) return to.clear();
    try {
      to.replace(from);
    } catch (const Error& error) {
      mismatch(name, error.what());
    }
  }
  void copy_list(const std::string& name, ConfigList& to, ConfigList& from) const {
    to.clear();
    for (size_t i = 0; i < from.size(); ++i) {
      to.append();
      if ((to.slot(i) == nullptr) != (from.slot(i) == nullptr)) mismatch(name, "");
      if (to.slot(i) != nullptr)
        fill(name, *to.slot(i), *from.slot(i));
      else
        copy_plain(name, to.at(i), from.at(i));
    }
  }

  const Config& to_;
  const Config& from_;
};

}  // namespace

void copy_fields(Config& to, const Config& from) {
  // fields() is not const because other visitors write; the source is only read.
  Config& source = const_cast<Config&>(from);
  TableVisitor given;
  source.fields(given);
  TableVisitor taken(&given.tables);
  to.fields(taken);
  const FieldFinder sources(source), targets(to);
  const Copier copier(to, from);
  for (const auto& [name, field] : targets.fields)
    if (const auto* same = sources.find(name)) copier.copy(name, field, *same);
}

void set_deltas(Config& to, std::initializer_list<NamedValue> deltas) {
  const FieldFinder targets(to);
  std::vector<std::string> absent;
  for (const NamedValue& delta : deltas)
    if (targets.find(delta.name) == nullptr) absent.push_back(delta.name);
  if (!absent.empty())
    throw Error("derive() got deltas for fields not on {}: [{}]", type_name(to),
                fmt::join(absent, ", "));
  for (const NamedValue& delta : deltas)
    set_fields(to, fmt::format("{{{}: {}}}", json_string(delta.name), delta.json),
               fmt::format("derive() of {}", type_name(to)));
}

}  // namespace rhea::config
