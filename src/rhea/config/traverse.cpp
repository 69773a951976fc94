#include "rhea/config/traverse.h"

#include <fmt/core.h>

#include "rhea/config/visitor.h"

namespace rhea::config {
namespace {

class Walker final : public Visitor {
 public:
  explicit Walker(const std::function<bool(const Node&)>& visit) : visit_(visit) {}

  void alias(std::string_view, std::string_view, std::string_view) override {}
  void no_effect(std::string_view, OptionType, std::string_view, std::string_view) override {}

 private:
  void leaf(const FieldInfo&, Leaf) override {}
  void section(const FieldInfo& info, Config& config) override {
    enter(std::string(info.name), config, nullptr);
  }
  void slot(const FieldInfo& info, SlotBase& slot) override {
    if (slot) enter(std::string(info.name), *slot.get(), &slot);
  }
  void list(const FieldInfo& info, ConfigList& list) override {
    for (size_t i = 0; i < list.size(); ++i)
      enter(std::string(info.name) + "." + std::to_string(i), list.at(i), list.slot(i));
  }
  void flat(std::string_view name, SlotBase& slot) override {
    if (!slot) return;
    // The node has a path, its fields lie beside it.
    const std::string parent = path_;
    const bool enters = visit_({below(parent, name), *slot.get(), &slot, depth_});
    ++depth_;
    if (enters) slot.get()->fields(*this);
    --depth_;
  }

  static std::string below(const std::string& parent, std::string_view name) {
    return parent.empty() ? std::string(name) : fmt::format("{}.{}", parent, name);
  }
  void enter(const std::string& name, Config& config, SlotBase* slot) {
    const std::string parent = path_;
    path_ = below(parent, name);
    const bool enters = visit_({path_, config, slot, depth_});
    ++depth_;
    // The visit may have refilled the slot, so the config is looked up again.
    if (enters) (slot ? *slot->get() : config).fields(*this);
    --depth_;
    path_ = parent;
  }

  const std::function<bool(const Node&)>& visit_;
  std::string path_;
  int depth_ = 0;
};

}  // namespace

void traverse(Config& root, const std::function<bool(const Node&)>& visit) {
  Walker walker(visit);
  root.fields(walker);
}

}  // namespace rhea::config
