#include "rhea/passes/remat_cost.h"

#include <algorithm>

namespace rhea::passes {

ir::Cost node_cost(const ir::Graph& graph, const ir::Node& node) {
  std::vector<ir::Type> in;
  in.reserve(node.inputs.size());
  for (const ir::ValueId id : node.inputs) in.push_back(graph.type(id));
  const ir::OpInstance instance{node.op, in, node.outputs, &node.attrs};
  if (node.op->cost) return node.op->cost(instance);
  ir::Cost cost;
  cost.flops = static_cast<double>(ir::num_elements(node.outputs[0].shape));
  for (const auto& type : in) cost.bytes += static_cast<double>(ir::byte_size(type));
  for (const auto& type : node.outputs) cost.bytes += static_cast<double>(ir::byte_size(type));
  return cost;
}

double recompute_cost(const ir::Graph& graph, const ir::Node& node) {
  // Two cores of a server do about 150 Gflop/s in f32 and move about 20 GB/s; bf16 and accelerators
  // have more flops per byte.
  constexpr double kFlopsPerByte = 8;
  const ir::Cost cost = node_cost(graph, node);
  return std::max(cost.flops, kFlopsPerByte * cost.bytes);
}

}  // namespace rhea::passes
