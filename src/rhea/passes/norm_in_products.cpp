#include "rhea/passes/norm_in_products.h"

#include <map>
#include <vector>

#include "rhea/ops/ops.h"
#include "rhea/ops/table.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;

bool is_weight_gradient(const Graph& graph, const Node& node) {
  if (node.op != &ops::kDotGeneral) return false;
  const ir::Type& a = graph.type(node.inputs[0]);
  return node.attrs.i64("lhs_contract") == 0 && node.attrs.i64("rhs_contract") == 0 &&
         a.rank() == 2 && (a.dtype == DType::f32 || a.dtype == DType::bf16) &&
         node.outputs[0].dtype == DType::f32;
}

}  // namespace

Graph norm_in_products(const Graph& graph,
                       const std::function<std::string(std::string_view output)>& squares_name) {
  if (!ops::added_kernels(ops::kDotGeneral).empty()) return graph;
  std::map<int32_t, std::string> names;  // by node
  for (const auto& out : graph.outputs()) {
    std::string name = squares_name(out.name);
    if (!name.empty() && is_weight_gradient(graph, graph.node(out.value)))
      names.emplace(out.value.node, std::move(name));
  }
  Graph result;
  std::vector<std::vector<Value>> made(graph.nodes().size());
  for (size_t i = 0; i < made.size(); ++i) {
    const Node& node = graph.nodes()[i];
    std::vector<Value> inputs;
    for (const ir::ValueId id : node.inputs)
      inputs.push_back(made[static_cast<size_t>(id.node)][static_cast<size_t>(id.output)]);
    made[i] = names.contains(static_cast<int32_t>(i))
                  ? result.add_as(graph, node, ops::kWeightGradSquares, inputs, {})
                  : result.add_like(graph, node, inputs);
  }
  for (const auto& out : graph.outputs())
    result.output(out.name,
                  made[static_cast<size_t>(out.value.node)][static_cast<size_t>(out.value.output)],
                  out.donates);
  for (const auto& [node, name] : names) result.output(name, made[static_cast<size_t>(node)][1]);
  return result;
}

}  // namespace rhea::passes
