// M rows of x, N rows and K columns of W, or of the W of each group
#include "rhea/passes/pack_weights.h"

#include "rhea/ops/dot_general/product.h"
#include "rhea/ops/grouped/grouped.h"
#include "rhea/ops/ops.h"
#include "rhea/passes/graph_copy.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;
using ir::ValueId;

constexpr int64_t kMinRows = 128;  // M below this: the product reads W once or twice only
constexpr int64_t kMinDim = 32;    // panels are 64 wide: below half of one, padding wins

bool derives_from_parameter(const Graph& graph, ValueId id,
                            const std::function<bool(std::string_view)>& is_parameter) {
  for (;;) {
    const Node& node = graph.node(id);
    if (node.op == &ir::kInput) return is_parameter(node.attrs.str("name"));
    if (node.inputs.size() != 1 || node.outputs.size() != 1) return false;
    id = node.inputs[0];
  }
}

ir::Layout layout_for(const Node& node) {
  return node.attrs.i64("rhs_contract") == 1 ? ir::Layout::panels_nk : ir::Layout::panels_kn;
}

// A grouped product that finds no panels packs all its matrices in each call.
bool pays_in_groups(const Graph& graph, const Node& node) {
  const ir::Type& w = graph.type(node.inputs[1]);
  // As below: cheap to pack again, and a second copy of the experts is most of the model.
  if (w.dtype == DType::f32 && node.attrs.i64("rhs_contract") == 0) return false;
  return w.layout == ir::Layout::row_major && graph.type(node.inputs[0]).shape[0] >= kMinRows &&
         w.shape[1] >= kMinDim && w.shape[2] >= kMinDim &&
         ops::can_pack_groups(w, layout_for(node));
}

bool pays(const Graph& graph, const Node& node, Isa isa) {
  if (node.op == &ops::kGroupedProduct) return pays_in_groups(graph, node);
  if (node.op != &ops::kDotGeneral) return false;
  const ir::Type& a = graph.type(node.inputs[0]);
  const ir::Type& b = graph.type(node.inputs[1]);
  if (a.rank() != 2 || b.rank() != 2 || b.layout != ir::Layout::row_major || a.dtype != b.dtype)
    return false;
  if (b.dtype != DType::f32 && b.dtype != DType::bf16) return false;
  // Our product packs these a panel at a time in L2 at no cost worth a second copy of the model.
  if (b.dtype == DType::f32 && node.attrs.i64("rhs_contract") == 0) return false;
  const std::vector<ir::Type> in = {a, b};
  if (isa == Isa::avx512_bf16 && ops::runs_on_tiles({node.op, in, node.outputs, &node.attrs}))
    return false;
  return node.attrs.i64("lhs_contract") == 1 && a.shape[0] >= kMinRows && b.shape[0] >= kMinDim &&
         b.shape[1] >= kMinDim;
}

}  // namespace

Graph pack_weights(const Graph& graph, const std::function<bool(std::string_view)>& is_parameter,
                   Isa isa) {
  Graph result;
  GraphCopy copy(graph, result);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    std::vector<Value> inputs = copy.operands(node);
    if (pays(graph, node, isa) && derives_from_parameter(graph, node.inputs[1], is_parameter)) {
      inputs[1] = result.add_as(graph, node, ops::kPack, std::vector{inputs[1]},
                                {{"layout", static_cast<int64_t>(layout_for(node))}})[0];
    }
    copy.set(i, result.add_like(graph, node, inputs));
  }
  copy.add_outputs();
  return result;
}

}  // namespace rhea::passes
