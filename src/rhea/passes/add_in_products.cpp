#include "rhea/passes/add_in_products.h"

#include <map>
#include <vector>

#include "rhea/ops/ops.h"
#include "rhea/ops/table.h"
#include "rhea/passes/graph_copy.h"
#include "rhea/passes/weight_gradient.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::Value;
using ir::ValueId;

// How often each node's results are read, outputs included.
std::vector<int> count_readers(const Graph& graph) {
  std::vector<int> readers(graph.nodes().size(), 0);
  for (const Node& node : graph.nodes()) {
    for (const ValueId id : node.inputs) ++readers[static_cast<size_t>(id.node)];
  }
  for (const auto& out : graph.outputs()) ++readers[static_cast<size_t>(out.value.node)];
  return readers;
}

}  // namespace

Graph add_in_products(const Graph& graph, Isa isa) {
  if (!ops::added_kernels(ops::kAdd).empty()) return graph;
  const auto readers = count_readers(graph);
  std::map<int32_t, int32_t> maker_of;  // by add
  std::vector<bool> joins(graph.nodes().size(), false);
  for (const auto& out : graph.outputs()) {
    const auto* input = out.donates.empty() ? nullptr : graph.find_input(out.donates);
    const Node& sum = graph.node(out.value);
    // Another reader of the input would have to run before the maker of the value.
    if (input == nullptr || sum.op != &ops::kAdd ||
        readers[static_cast<size_t>(out.value.node)] != 1 ||
        readers[static_cast<size_t>(input->value.node)] != 1)
      continue;
    const bool input_first = sum.inputs[0] == input->value;
    if (!input_first && sum.inputs[1] != input->value) continue;
    const int32_t made_by = sum.inputs[input_first ? 1 : 0].node;
    const Node& maker = graph.nodes()[static_cast<size_t>(made_by)];
    if (readers[static_cast<size_t>(made_by)] != 1) continue;
    const bool table = maker.op == &ops::kEmbeddingGrad && maker.inputs.size() == 2 &&
                       ops::added_kernels(ops::kEmbeddingGrad).empty();
    if (!table && !is_weight_gradient(graph, maker, ops::kWeightGradAdd, true, isa)) continue;
    maker_of[out.value.node] = made_by;
    joins[static_cast<size_t>(made_by)] = true;
  }
  Graph result;
  GraphCopy copy(graph, result);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (joins[i]) continue;
    const auto found = maker_of.find(static_cast<int32_t>(i));
    if (found == maker_of.end()) {
      copy.add(i);
      continue;
    }
    const Node& sum = graph.nodes()[i];
    const Node& maker = graph.nodes()[static_cast<size_t>(found->second)];
    std::vector<Value> in = copy.operands(maker);
    in.push_back(copy[sum.inputs[sum.inputs[0].node == found->second ? 1 : 0]]);
    const bool table = maker.op == &ops::kEmbeddingGrad;
    copy.set(i, result.add_as(graph, maker, table ? ops::kEmbeddingGrad : ops::kWeightGradAdd, in,
                              table ? maker.attrs : ir::Attrs{}));
  }
  copy.add_outputs();
  return result;
}

}  // namespace rhea::passes
