// Printing graphs.
#include "rhea/ir/print.h"

#include <fmt/core.h>

namespace rhea::ir {
namespace {

std::string value_name(const Graph& graph, ValueId id) {
  if (graph.node(id).outputs.size() == 1) return fmt::format("%{}", id.node);
  return fmt::format("%{}.{}", id.node, id.output);
}

// Scope and line as one word each.
std::string word(const std::string& name) {
  if (name.empty()) return "-";
  for (const char c : name) {
    if (c <= ' ' || c == '"' || c == 0x7f || name == "-") return ir::quoted(name);
  }
  return name;
}

}  // namespace

std::string to_text(const Graph& graph, int32_t index) {
  const Node& node = graph.nodes()[static_cast<size_t>(index)];
  std::string text;
  for (int32_t i = 0; i < static_cast<int32_t>(node.outputs.size()); ++i)
    text += (i == 0 ? "" : ", ") + value_name(graph, {index, i});
  text += fmt::format(" = {}(", node.op->name);
  for (size_t i = 0; i < node.inputs.size(); ++i)
    text += (i == 0 ? "" : ", ") + value_name(graph, node.inputs[i]);
  text += ")";
  if (!node.attrs.empty()) {
    bool first = true;
    for (const auto& [name, value] : node.attrs) {
      text += fmt::format("{}{}={}", first ? " {" : ", ", name, to_string(value));
      first = false;
    }
    text += "}";
  }
  for (size_t i = 0; i < node.outputs.size(); ++i)
    text += (i == 0 ? " : " : ", ") + to_string(node.outputs[i]);
  text += fmt::format("  # {} {}", word(graph.scope_name(node)), word(graph.location_name(node)));
  return text;
}

std::string to_text(const Graph& graph) {
  std::string text;
  for (int32_t i = 0; i < static_cast<int32_t>(graph.nodes().size()); ++i)
    text += to_text(graph, i) + "\n";
  for (const GraphOutput& output : graph.outputs()) {
    text += fmt::format("output {} = {}", ir::quoted(output.name), value_name(graph, output.value));
    if (!output.donates.empty()) text += fmt::format(" donates {}", ir::quoted(output.donates));
    text += "\n";
  }
  return text;
}

}  // namespace rhea::ir
