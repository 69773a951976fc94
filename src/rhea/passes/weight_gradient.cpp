#include "rhea/passes/weight_gradient.h"

#include <string_view>
#include <vector>

#include "rhea/ops/ops.h"
#include "rhea/ops/table.h"

namespace rhea::passes {
namespace {

// The kernel that comes with the row and runs the node on such a CPU.
std::string_view own_kernel(const ir::OpInstance& node, Isa isa) {
  for (const ir::CpuKernel& kernel : node.op->cpu) {
    if (kernel.isa <= isa && (!kernel.accepts || kernel.accepts(node).empty())) return kernel.name;
  }
  return "";
}

}  // namespace

bool is_weight_gradient(const ir::Graph& graph, const ir::Node& node, const ir::OpDef& row,
                        bool adds, Isa isa) {
  if (node.op != &ops::kDotGeneral) return false;
  std::vector<ir::Type> in = {graph.type(node.inputs[0]), graph.type(node.inputs[1])};
  const std::vector<ir::Type> factors = in;
  const ir::OpInstance product{node.op, factors, node.outputs, &node.attrs};
  if (node.attrs.i64("lhs_contract") != 0 || node.attrs.i64("rhs_contract") != 0 ||
      in[0].rank() != 2 || (in[0].dtype != DType::f32 && in[0].dtype != DType::bf16) ||
      node.outputs[0].dtype != DType::f32 || ops::has_added_kernel(product, isa))
    return false;
  if (adds) in.push_back(node.outputs[0]);
  const ir::Attrs none;
  const std::vector<ir::Type> out = row.infer(in, none);
  return own_kernel(product, isa) == own_kernel({&row, in, out, &none}, isa);
}

}  // namespace rhea::passes
