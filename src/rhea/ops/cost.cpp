// Costs that a row leaves to its decomposition.
#include "rhea/ops/cost.h"

#include "rhea/ops/row.h"

namespace rhea::ops {
namespace {

double decomposition_flops(const ir::OpInstance& node, ir::Place place) {
  ir::Graph body;
  std::vector<ir::Value> operands;
  for (size_t i = 0; i < node.in.size(); ++i)
    operands.push_back(body.input(std::to_string(i), node.in[i]));
  ir::call_decompose(node, body, operands, place);
  double flops = 0;
  for (const ir::Node& part : body.nodes()) {
    if (part.op == &ir::kInput || part.op == &ir::kConstant) continue;
    std::vector<ir::Type> in;
    for (const ir::ValueId id : part.inputs) in.push_back(body.type(id));
    flops += cost_of({part.op, in, part.outputs, &part.attrs}, place).flops;
  }
  return flops;
}

}  // namespace

ir::Cost cost_of(const ir::OpInstance& node, ir::Place place) {
  if (node.op->cost) return node.op->cost(node);
  ir::Cost cost{0, operand_and_result_bytes(node)};
  if (node.op->decompose) {
    cost.flops = decomposition_flops(node, place);
    return cost;
  }
  for (const ir::Type& type : node.out) cost.flops += static_cast<double>(num_elements(type.shape));
  return cost;
}

}  // namespace rhea::ops
