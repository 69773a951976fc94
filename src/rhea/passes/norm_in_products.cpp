#include "rhea/passes/norm_in_products.h"

#include <set>
#include <utility>
#include <vector>

#include "rhea/ops/ops.h"
#include "rhea/ops/table.h"
#include "rhea/passes/graph_copy.h"
#include "rhea/passes/weight_gradient.h"

namespace rhea::passes {

using ir::Graph;
using ir::Node;

Graph norm_in_products(const Graph& graph, Isa isa,
                       const std::function<std::string(std::string_view output)>& squares_name) {
  if (!ops::added_kernels(ops::kGlobalNorm).empty()) return graph;
  std::vector<std::pair<std::string, int32_t>> squares;  // name and node
  std::set<int32_t> changed;
  for (const auto& out : graph.outputs()) {
    std::string name = squares_name(out.name);
    if (name.empty() ||
        !is_weight_gradient(graph, graph.node(out.value), ops::kWeightGradSquares, false, isa))
      continue;
    squares.emplace_back(std::move(name), out.value.node);
    changed.insert(out.value.node);
  }
  Graph result;
  GraphCopy copy(graph, result);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (changed.contains(static_cast<int32_t>(i)))
      copy.set(i, result.add_as(graph, node, ops::kWeightGradSquares, copy.operands(node), {}));
    else
      copy.add(i);
  }
  copy.add_outputs();
  for (const auto& [name, node] : squares) result.output(name, copy[{node, 1}]);
  return result;
}

}  // namespace rhea::passes
