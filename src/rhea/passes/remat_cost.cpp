#include "rhea/passes/remat_cost.h"

#include <algorithm>

#include "rhea/ops/cost.h"

namespace rhea::passes {

ir::Cost node_cost(const ir::Graph& graph, const ir::Node& node) {
  std::vector<ir::Type> in;
  in.reserve(node.inputs.size());
  for (const ir::ValueId id : node.inputs) in.push_back(graph.type(id));
  return ops::cost_of({node.op, in, node.outputs, &node.attrs}, {&graph, &node});
}

double recompute_cost(const ir::Graph& graph, const ir::Node& node) {
  // Two cores of a server do about 150 Gflop/s in f32 and move about 20 GB/s; bf16 and accelerators
  // have more flops per byte.
  constexpr double kFlopsPerByte = 8;
  const ir::Cost cost = node_cost(graph, node);
  return std::max(cost.flops, kFlopsPerByte * cost.bytes);
}

}  // namespace rhea::passes
