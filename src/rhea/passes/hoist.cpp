// One forward walk: each node goes to one of the two graphs.
#include "rhea/passes/hoist.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <map>

#include "rhea/ops/ops.h"
#include "rhea/passes/graph_copy.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;
using ir::ValueId;

bool grows(const Graph& graph, const Node& node) {
  int64_t in = 0, out = 0;
  for (const ValueId id : node.inputs) in += ir::byte_size(graph.type(id));
  for (const ir::Type& type : node.outputs) out += ir::byte_size(type);
  // Padding of packed layouts does not count as growth.
  return node.op != &ops::kPack && out > in;
}

std::string expression(const Node& node, const std::vector<std::string>& operands) {
  std::vector<std::string> attrs;
  for (const auto& [name, attr] : node.attrs) attrs.push_back(ir::to_string(attr));
  return fmt::format("{}[{}]({})", node.op->name, fmt::join(attrs, ","), fmt::join(operands, ","));
}

}  // namespace

Hoisted hoist(const Graph& graph, const std::function<bool(std::string_view)>& is_parameter) {
  Hoisted split;
  const size_t count = graph.nodes().size();
  GraphCopy prepared(graph, split.prepare);
  std::vector<std::vector<Value>> rest(count);
  std::vector<std::vector<std::string>> names(count);  // of values that `prepare` has
  std::vector<bool> moved(count, false), parameter(count, false);

  // The value in `rest`: made there, or brought over as an input.
  const auto in_rest = [&](ValueId id) {
    const auto node = static_cast<size_t>(id.node);
    const auto output = static_cast<size_t>(id.output);
    if (rest[node].empty()) rest[node].resize(graph.nodes()[node].outputs.size());
    Value& value = rest[node][output];
    if (!value.valid()) {
      const std::string& name = names[node][output];
      value = split.rest.input(name, graph.type(id));
      if (!parameter[node]) split.prepare.output(name, prepared[id]);
    }
    return value;
  };

  for (size_t i = 0; i < count; ++i) {
    const Node& node = graph.nodes()[i];
    if (node.op == &ir::kInput && is_parameter(node.attrs.str("name"))) {
      parameter[i] = moved[i] = true;
      names[i] = {node.attrs.str("name")};
      prepared.add(i);
      continue;
    }
    bool movable = !node.inputs.empty() && !node.op->has_side_effect && !grows(graph, node);
    for (const ValueId id : node.inputs) movable = movable && moved[static_cast<size_t>(id.node)];
    if (movable) {
      moved[i] = true;
      std::vector<std::string> operands;
      for (const ValueId id : node.inputs)
        operands.push_back(names[static_cast<size_t>(id.node)][static_cast<size_t>(id.output)]);
      prepared.add(i);
      for (size_t k = 0; k < node.outputs.size(); ++k)
        names[i].push_back(expression(node, operands) + (k == 0 ? "" : fmt::format(".{}", k)));
    } else {
      std::vector<Value> inputs;
      for (const ValueId id : node.inputs) inputs.push_back(in_rest(id));
      rest[i] = split.rest.add_like(graph, node, inputs);
    }
  }
  for (const auto& out : graph.outputs())
    split.rest.output(out.name, in_rest(out.value), out.donates);
  return split;
}

void merge_prepare(Graph& into, const Graph& from) {
  GraphCopy copy(from, into);
  for (size_t i = 0; i < from.nodes().size(); ++i) {
    const Node& node = from.nodes()[i];
    if (node.op == &ir::kInput) {
      if (const auto* input = into.find_input(node.attrs.str("name"))) {
        copy.set(i, {into.value(input->value)});
        continue;
      }
    }
    copy.add(i);
  }
  for (const auto& out : from.outputs()) {
    if (into.find_output(out.name) == nullptr) into.output(out.name, copy[out.value]);
  }
}

}  // namespace rhea::passes
