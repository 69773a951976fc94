#include "rhea/passes/remat_schedule.h"

#include <algorithm>
#include <map>
#include <string>

#include "rhea/base/error.h"
#include "rhea/ops/barrier/optimization_barrier.h"
#include "rhea/ops/ops.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::ValueId;

// "model.layers.3" of "model.layers.3.attention.wq"; empty outside blocks.
std::string_view block_of(std::string_view scope) {
  constexpr std::string_view kList = "layers.";
  for (size_t at = scope.find(kList); at != std::string_view::npos;
       at = scope.find(kList, at + 1)) {
    if (at > 0 && scope[at - 1] != '.') continue;
    size_t end = at + kList.size();
    while (end < scope.size() && scope[end] >= '0' && scope[end] <= '9') ++end;
    if (end > at + kList.size() && (end == scope.size() || scope[end] == '.'))
      return scope.substr(0, end);
  }
  return {};
}

}  // namespace

Regions::Regions(const Graph& graph, std::string_view loss) {
  const auto* output = graph.find_output(loss);
  RHEA_CHECK(output != nullptr, "remat: the graph has no output '{}'", loss);
  backward_begin = output->value.node + 1;

  const size_t count = graph.nodes().size();
  std::map<std::string_view, int32_t> numbers;
  std::vector<int32_t> of_scope;  // -2: not seen yet
  block.resize(count);
  recomputable.assign(count, false);
  for (size_t i = 0; i < count; ++i) {
    const Node& node = graph.nodes()[i];
    const auto scope = static_cast<size_t>(node.scope);
    if (of_scope.size() <= scope) of_scope.resize(scope + 1, -2);
    if (of_scope[scope] == -2) {
      const auto name = block_of(graph.scope_name(node));
      of_scope[scope] =
          name.empty() ? -1
                       : numbers.emplace(name, static_cast<int32_t>(numbers.size())).first->second;
    }
    block[i] = of_scope[scope];
    if (static_cast<int32_t>(i) >= backward_begin) continue;
    recomputable[i] = block[i] >= 0 && !node.inputs.empty() && !node.op->has_side_effect;
    for (const ValueId id : node.inputs) {
      const auto operand = static_cast<size_t>(id.node);
      if (block[operand] != block[i]) recomputable[operand] = false;
    }
  }
  for (const auto& out : graph.outputs()) recomputable[static_cast<size_t>(out.value.node)] = false;
  num_blocks = static_cast<int32_t>(numbers.size());
}

bool reads_second(const Regions& regions, const std::vector<bool>& recompute, ScheduledNode reader,
                  ValueId operand) {
  return (reader.again || reader.node >= regions.backward_begin) &&
         recompute[static_cast<size_t>(operand.node)];
}

std::vector<ScheduledNode> schedule(const Graph& graph, const Regions& regions,
                                    const std::vector<bool>& recompute) {
  const auto count = static_cast<int32_t>(graph.nodes().size());
  std::vector<ScheduledNode> order;
  std::vector<bool> repeated(graph.nodes().size(), false);
  std::vector<int32_t> needed;
  const auto need = [&](const Node& node) {
    for (const ValueId id : node.inputs) {
      const auto operand = static_cast<size_t>(id.node);
      if (!recompute[operand] || repeated[operand]) continue;
      repeated[operand] = true;
      needed.push_back(id.node);
    }
  };
  for (int32_t i = 0; i < count; ++i) {
    if (i >= regions.backward_begin) {
      needed.clear();
      need(graph.nodes()[static_cast<size_t>(i)]);
      // The list grows while it is walked.
      for (size_t k = 0; k < needed.size(); ++k)
        need(graph.nodes()[static_cast<size_t>(needed[k])]);
      std::sort(needed.begin(), needed.end());
      for (const int32_t node : needed) order.push_back({node, true});
    }
    order.push_back({i, false});
  }
  return order;
}

bool is_view(const Node& node) {
  return node.op == &ops::kReshape || node.op == &ops::kSlice || node.op == &ops::kStopGradient ||
         node.op == &ops::kOptimizationBarrier;
}

std::vector<Lifetime> lifetimes(const Graph& graph, const Regions& regions,
                                const std::vector<bool>& recompute,
                                const std::vector<ScheduledNode>& order) {
  const auto& nodes = graph.nodes();
  std::vector<size_t> first(nodes.size() + 1, 0);  // number of a node's first result
  for (size_t i = 0; i < nodes.size(); ++i) first[i + 1] = first[i] + nodes[i].outputs.size();
  const size_t count = first.back();

  // Results of the first computation, then those of the second.
  std::vector<Lifetime> lives(2 * count, {-1, -1, 0});
  std::vector<size_t> root(2 * count);
  std::vector<bool> elsewhere(count, false);
  for (const auto& out : graph.outputs())
    elsewhere[first[static_cast<size_t>(out.value.node)] + static_cast<size_t>(out.value.output)] =
        true;

  for (size_t s = 0; s < order.size(); ++s) {
    const auto n = static_cast<size_t>(order[s].node);
    const Node& node = nodes[n];
    const auto step = static_cast<int32_t>(s);
    const auto operand = [&](ValueId id) {
      const size_t value = first[static_cast<size_t>(id.node)] + static_cast<size_t>(id.output);
      return root[value + (reads_second(regions, recompute, order[s], id) ? count : 0)];
    };
    for (const ValueId id : node.inputs) lives[operand(id)].last = step;
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const size_t value = first[n] + k;
      const size_t at = value + (order[s].again ? count : 0);
      root[at] = is_view(node) ? operand(node.inputs[0]) : at;
      if (root[at] != at) continue;
      const bool stored = node.op != &ir::kInput && node.op != &ir::kConstant && !elsewhere[value];
      lives[at] = {step, step, stored ? ir::byte_size(node.outputs[k]) : 0};
    }
  }
  std::erase_if(lives, [](const Lifetime& life) { return life.bytes == 0; });
  return lives;
}

int64_t peak_bytes(const std::vector<Lifetime>& lives, size_t num_steps) {
  std::vector<int64_t> change(num_steps + 1, 0);
  for (const Lifetime& life : lives) {
    change[static_cast<size_t>(life.first)] += life.bytes;
    change[static_cast<size_t>(life.last) + 1] -= life.bytes;
  }
  int64_t alive = 0, peak = 0;
  for (const int64_t bytes : change) peak = std::max(peak, alive += bytes);
  return peak;
}

}  // namespace rhea::passes
