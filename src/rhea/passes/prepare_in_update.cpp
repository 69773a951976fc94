#include "rhea/passes/prepare_in_update.h"

#include <algorithm>
#include <map>
#include <optional>

#include "rhea/base/error.h"
#include "rhea/ops/ops.h"
#include "rhea/passes/graph_copy.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Layout;
using ir::Node;
using ir::Value;
using ir::ValueId;

// A value that is one parameter in another dtype or layout.
struct Copy {
  std::string parameter;
  DType dtype;
  Layout layout;
};

// Which nodes of `prepare` are such copies; every node has one result.
std::vector<std::optional<Copy>> find_copies(const Graph& prepare) {
  std::vector<std::optional<Copy>> copies(prepare.nodes().size());
  for (size_t i = 0; i < copies.size(); ++i) {
    const Node& node = prepare.nodes()[i];
    if (node.op == &ir::kInput) {
      copies[i] = Copy{node.attrs.str("name"), node.outputs[0].dtype, node.outputs[0].layout};
    } else if (node.op == &ops::kConvert || node.op == &ops::kPack) {
      const auto& from = copies[static_cast<size_t>(node.inputs[0].node)];
      // Only a cast of the parameter itself: a chain of casts rounds more than once.
      const bool original = prepare.node(node.inputs[0]).op == &ir::kInput;
      if (from && (node.op == &ops::kPack || original))
        copies[i] = Copy{from->parameter, node.outputs[0].dtype, node.outputs[0].layout};
    }
  }
  return copies;
}

class Merge {
 public:
  Merge(const Graph& update, const Graph& prepare)
      : update_(update), prepare_(prepare), copies_(find_copies(prepare)) {}

  Graph run() {
    choose_copies();
    for (const auto& out : update_.outputs()) {
      if (!out.donates.empty()) updated_by_[out.donates] = out.value;
    }
    for (size_t i = 0; i < update_.nodes().size(); ++i) add_update_node(i);
    updated_.add_outputs();
    add_prepare();
    return std::move(result_);
  }

 private:
  struct Wanted {
    DType dtype = DType::bf16;
    std::vector<int64_t> layouts;
    std::vector<Value> written;  // results of adam_pack, as layouts
  };

  // Per parameter, the copies of one dtype that something needs: graph outputs and operands of
  // other nodes than casts and packings.
  void choose_copies() {
    std::vector<bool> needed(copies_.size());
    for (const auto& out : prepare_.outputs()) needed[static_cast<size_t>(out.value.node)] = true;
    for (size_t i = 0; i < copies_.size(); ++i) {
      for (const ValueId input : prepare_.nodes()[i].inputs) {
        if (!copies_[i]) needed[static_cast<size_t>(input.node)] = true;
      }
    }
    for (size_t i = 0; i < copies_.size(); ++i) {
      if (!needed[i] || !copies_[i] || prepare_.nodes()[i].op == &ir::kInput) continue;
      auto [at, added] = wanted_.try_emplace(copies_[i]->parameter);
      if (added) at->second.dtype = copies_[i]->dtype;
      const auto layout = static_cast<int64_t>(copies_[i]->layout);
      auto& layouts = at->second.layouts;
      if (at->second.dtype == copies_[i]->dtype &&
          std::find(layouts.begin(), layouts.end(), layout) == layouts.end())
        layouts.push_back(layout);
    }
  }

  void add_update_node(size_t i) {
    const Node& node = update_.nodes()[i];
    Wanted* wanted = node.op == &ops::kAdam ? copies_written_by(node) : nullptr;
    if (wanted == nullptr) return updated_.add(i);
    ir::Attrs attrs = node.attrs;
    attrs.set("copy_dtype", wanted->dtype);
    attrs.set("copies", wanted->layouts);
    const auto results =
        result_.add_as(update_, node, ops::kAdamPack, updated_.operands(node), attrs);
    wanted->written.assign(results.begin() + 3, results.end());
    updated_.set(i, results);
  }

  // The copies that an adam node can write: of an f32 matrix that is a graph input and that its
  // first result replaces.
  Wanted* copies_written_by(const Node& node) {
    const Node& parameter = update_.node(node.inputs[0]);
    const ir::Type& type = parameter.outputs[0];
    if (parameter.op != &ir::kInput || type.rank() < 2 || type.rank() > 3 ||
        type.dtype != DType::f32)
      return nullptr;
    const auto at = wanted_.find(parameter.attrs.str("name"));
    if (at == wanted_.end() || at->second.layouts.empty()) return nullptr;
    if (at->second.dtype != DType::f32 && at->second.dtype != DType::bf16) return nullptr;
    const auto replaced = updated_by_.find(at->first);
    const bool same = replaced != updated_by_.end() && &update_.node(replaced->second) == &node &&
                      replaced->second.output == 0;
    return same ? &at->second : nullptr;
  }

  void add_prepare() {
    prepared_.resize(prepare_.nodes().size());
    for (const auto& out : prepare_.outputs()) result_.output(out.name, prepared(out.value));
  }

  // The value of a node of `prepare` on the new parameters, made when it is asked for first: chains
  // are a few casts and packings long.
  Value prepared(ValueId id) {
    std::vector<Value>& values = prepared_[static_cast<size_t>(id.node)];
    if (values.empty()) values = prepare_again(id.node);
    return values[static_cast<size_t>(id.output)];
  }

  std::vector<Value> prepare_again(int32_t index) {
    const Node& node = prepare_.nodes()[static_cast<size_t>(index)];
    if (const Value written = written_copy(static_cast<size_t>(index)); written.valid())
      return {written};
    if (node.op == &ir::kInput) {
      const std::string& name = node.attrs.str("name");
      if (const auto replaced = updated_by_.find(name); replaced != updated_by_.end())
        return {updated_[replaced->second]};
      const auto* existing = result_.find_input(name);
      return {existing != nullptr ? result_.value(existing->value)
                                  : result_.input(name, node.outputs[0])};
    }
    std::vector<Value> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(prepared(input));
    return result_.add_like(prepare_, node, inputs);
  }

  Value written_copy(size_t i) const {
    const auto& copy = copies_[i];
    if (!copy || prepare_.nodes()[i].op == &ir::kInput) return {};
    const auto at = wanted_.find(copy->parameter);
    if (at == wanted_.end() || at->second.written.empty() || at->second.dtype != copy->dtype)
      return {};
    const auto& layouts = at->second.layouts;
    const auto found =
        std::find(layouts.begin(), layouts.end(), static_cast<int64_t>(copy->layout));
    return found == layouts.end()
               ? Value{}
               : at->second.written[static_cast<size_t>(found - layouts.begin())];
  }

  const Graph& update_;
  const Graph& prepare_;
  std::vector<std::optional<Copy>> copies_;
  std::map<std::string, Wanted> wanted_;
  std::map<std::string, ValueId> updated_by_;
  std::vector<std::vector<Value>> prepared_;  // per node of prepare
  Graph result_;
  GraphCopy updated_{update_, result_};
};

}  // namespace

Graph prepare_in_update(const Graph& update, const Graph& prepare) {
  return Merge(update, prepare).run();
}

}  // namespace rhea::passes
