#include "rhea/passes/norm_in_products.h"

#include <set>
#include <utility>
#include <vector>

#include "rhea/ops/ops.h"
#include "rhea/ops/table.h"
#include "rhea/passes/graph_copy.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Node;

// The kernel that comes with the row and runs the node on such a CPU.
std::string_view own_kernel(const ir::OpInstance& node, Isa isa) {
  for (const ir::CpuKernel& kernel : node.op->cpu) {
    if (kernel.isa <= isa && (!kernel.accepts || kernel.accepts(node).empty())) return kernel.name;
  }
  return "";
}

bool is_weight_gradient(const Graph& graph, const Node& node, Isa isa) {
  if (node.op != &ops::kDotGeneral) return false;
  const std::vector<ir::Type> in = {graph.type(node.inputs[0]), graph.type(node.inputs[1])};
  const ir::OpInstance product{node.op, in, node.outputs, &node.attrs};
  if (node.attrs.i64("lhs_contract") != 0 || node.attrs.i64("rhs_contract") != 0 ||
      in[0].rank() != 2 || (in[0].dtype != DType::f32 && in[0].dtype != DType::bf16) ||
      node.outputs[0].dtype != DType::f32 || ops::has_added_kernel(product, isa))
    return false;
  const std::vector<ir::Type> out = {node.outputs[0], {DType::f64, {}}};
  const ir::Attrs none;
  return own_kernel(product, isa) == own_kernel({&ops::kWeightGradSquares, in, out, &none}, isa);
}

}  // namespace

Graph norm_in_products(const Graph& graph, Isa isa,
                       const std::function<std::string(std::string_view output)>& squares_name) {
  if (!ops::added_kernels(ops::kGlobalNorm).empty()) return graph;
  std::vector<std::pair<std::string, int32_t>> squares;  // name and node
  std::set<int32_t> changed;
  for (const auto& out : graph.outputs()) {
    std::string name = squares_name(out.name);
    if (name.empty() || !is_weight_gradient(graph, graph.node(out.value), isa)) continue;
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
