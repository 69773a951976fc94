#include "rhea/passes/graph_copy.h"

#include <utility>

namespace rhea::passes {

using ir::Value;
using ir::ValueId;

GraphCopy::GraphCopy(const ir::Graph& from, ir::Graph& to)
    : from_(from), to_(to), made_(from.nodes().size()) {}

Value GraphCopy::operator[](ValueId id) const {
  return made_[static_cast<size_t>(id.node)][static_cast<size_t>(id.output)];
}

std::vector<Value> GraphCopy::operands(const ir::Node& node) const {
  std::vector<Value> values;
  values.reserve(node.inputs.size());
  for (const ValueId id : node.inputs) values.push_back((*this)[id]);
  return values;
}

void GraphCopy::add(size_t node) {
  const ir::Node& original = from_.nodes()[node];
  set(node, to_.add_like(from_, original, operands(original)));
}

void GraphCopy::set(size_t node, std::vector<Value> results) { made_[node] = std::move(results); }

void GraphCopy::add_nodes() {
  for (size_t i = 0; i < made_.size(); ++i) add(i);
}

void GraphCopy::add_outputs() const {
  for (const auto& out : from_.outputs()) to_.output(out.name, (*this)[out.value], out.donates);
}

}  // namespace rhea::passes
