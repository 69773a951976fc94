#include "rhea/passes/donation_order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <vector>

#include "rhea/passes/graph_copy.h"

namespace rhea::passes {
namespace {

// Nodes after `from` that need its result, by node.
std::vector<bool> needing(const ir::Graph& graph, size_t from) {
  std::vector<bool> result(graph.nodes().size(), false);
  result[from] = true;
  for (size_t n = from + 1; n < result.size(); ++n) {
    for (const ir::ValueId id : graph.nodes()[n].inputs) {
      if (result[static_cast<size_t>(id.node)]) result[n] = true;
    }
  }
  return result;
}

}  // namespace

ir::Graph order_for_donation(const ir::Graph& graph) {
  const auto& nodes = graph.nodes();
  // Edges besides those of the operands: (reader, writer).
  std::vector<std::vector<size_t>> writers_after(nodes.size());
  bool any = false;
  std::vector<std::vector<size_t>> readers(nodes.size());  // of input nodes
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (const ir::ValueId id : nodes[n].inputs) {
      if (graph.node(id).op == &ir::kInput) readers[static_cast<size_t>(id.node)].push_back(n);
    }
  }
  for (const auto& out : graph.outputs()) {
    const auto* input = out.donates.empty() ? nullptr : graph.find_input(out.donates);
    if (input == nullptr || input->value == out.value) continue;
    const auto writer = static_cast<size_t>(out.value.node);
    const auto& list = readers[static_cast<size_t>(input->value.node)];
    const bool late = !list.empty() && list.back() > writer;
    const auto needs = late ? needing(graph, writer) : std::vector<bool>();
    for (const size_t reader : list) {
      if (reader == writer || (reader > writer && needs[reader])) continue;
      writers_after[reader].push_back(writer);
    }
    any = any || late;
  }
  if (!any) return graph;

  // Smallest number first among the nodes whose operands and earlier readers are done.
  std::vector<int> waits(nodes.size(), 0);
  std::vector<std::vector<size_t>> users(nodes.size());
  for (size_t n = 0; n < nodes.size(); ++n) {
    for (const ir::ValueId id : nodes[n].inputs) {
      users[static_cast<size_t>(id.node)].push_back(n);
      ++waits[n];
    }
    for (const size_t writer : writers_after[n]) {
      users[n].push_back(writer);
      ++waits[writer];
    }
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (waits[n] == 0) ready.push(n);
  }
  ir::Graph to;
  GraphCopy copy(graph, to);
  size_t done = 0;
  while (!ready.empty()) {
    const size_t n = ready.top();
    ready.pop();
    ++done;
    copy.add(n);
    for (const size_t user : users[n]) {
      if (--waits[user] == 0) ready.push(user);
    }
  }
  if (done < nodes.size()) return graph;  // a circle of donations: the executor copies
  copy.add_outputs();
  return to;
}

}  // namespace rhea::passes
