#include "rhea/passes/remat_budget.h"

#include <algorithm>
#include <map>

#include "rhea/passes/remat_cost.h"
#include "rhea/passes/remat_cut.h"

namespace rhea::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::ValueId;

// Everything that the choices depend on. Equal blocks, which are most of a model, share their
// choices.
std::vector<double> signature(const BlockProblem& problem) {
  std::vector<double> key;
  for (const auto& node : problem.nodes) {
    key.push_back(node.cost);
    key.push_back(node.view);
    key.push_back(static_cast<double>(node.results.size()));
    for (const auto& result : node.results) {
      key.push_back(static_cast<double>(result.bytes));
      key.push_back(result.read_by_backward);
    }
    key.push_back(static_cast<double>(node.operands.size()));
    for (const auto& [operand, result] : node.operands) {
      key.push_back(operand);
      key.push_back(result);
    }
  }
  return key;
}

}  // namespace

BudgetTrades::BudgetTrades(const Graph& graph, const Regions& regions, std::vector<bool> always,
                           std::function<int64_t(const std::vector<bool>&)> live_bytes)
    : always_(std::move(always)),
      live_bytes_(std::move(live_bytes)),
      nodes_(static_cast<size_t>(regions.num_blocks)) {
  const auto& nodes = graph.nodes();
  std::vector<BlockProblem> problems(nodes_.size());
  std::vector<int32_t> local(nodes.size(), -1);  // number inside the block's problem
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    if (static_cast<int32_t>(i) >= regions.backward_begin) {
      for (const ValueId id : node.inputs) {
        const auto operand = static_cast<size_t>(id.node);
        if (local[operand] < 0) continue;
        auto& problem = problems[static_cast<size_t>(regions.block[operand])];
        problem.nodes[static_cast<size_t>(local[operand])]
            .results[static_cast<size_t>(id.output)]
            .read_by_backward = true;
      }
      continue;
    }
    if (!regions.recomputable[i]) continue;
    const auto block = static_cast<size_t>(regions.block[i]);
    local[i] = static_cast<int32_t>(nodes_[block].size());
    nodes_[block].push_back(static_cast<int32_t>(i));
    BlockProblem::Node made;
    made.view = is_view(node);
    made.cost = made.view ? 0 : recompute_cost(graph, node);
    for (const ir::Type& type : node.outputs) made.results.push_back({ir::byte_size(type), false});
    for (const ValueId id : node.inputs) {
      if (local[static_cast<size_t>(id.node)] >= 0)
        made.operands.emplace_back(local[static_cast<size_t>(id.node)], id.output);
    }
    problems[block].nodes.push_back(std::move(made));
  }

  std::map<std::vector<double>, std::vector<BlockChoice>> known;
  for (size_t block = 0; block < problems.size(); ++block) {
    const auto [at, added] = known.try_emplace(signature(problems[block]));
    if (added) at->second = best_choices(problems[block]);
    choices_.emplace_back();
    for (size_t c = 0; c < at->second.size(); ++c) {
      const BlockChoice& choice = at->second[c];
      choices_.back().push_back(choice.recompute);
      if (c == 0) continue;
      const BlockChoice& before = at->second[c - 1];
      trades_.push_back({(before.bytes - choice.bytes) / std::max(choice.cost - before.cost, 1e-9),
                         static_cast<int32_t>(block), static_cast<int32_t>(c)});
    }
  }
  // Among equals the early blocks first: the peak is at the end of the forward pass, where the last
  // block's values are about to be used anyway.
  std::stable_sort(trades_.begin(), trades_.end(), [](const Trade& a, const Trade& b) {
    return a.bytes_per_cost > b.bytes_per_cost;
  });
}

std::vector<bool> BudgetTrades::take(size_t num_trades) const {
  std::vector<int32_t> taken(nodes_.size(), 0);
  for (size_t t = 0; t < num_trades; ++t) {
    int32_t& choice = taken[static_cast<size_t>(trades_[t].block)];
    choice = std::max(choice, trades_[t].choice);
  }
  std::vector<bool> recompute = always_;
  for (size_t block = 0; block < nodes_.size(); ++block) {
    if (taken[block] == 0) continue;
    const auto& chosen = choices_[block][static_cast<size_t>(taken[block])];
    for (size_t k = 0; k < chosen.size(); ++k)
      if (chosen[k]) recompute[static_cast<size_t>(nodes_[block][k])] = true;
  }
  return recompute;
}

int64_t BudgetTrades::peak(size_t num_trades) {
  const auto [at, added] = peaks_.try_emplace(num_trades);
  if (added) at->second = live_bytes_(take(num_trades));
  return at->second;
}

std::vector<bool> BudgetTrades::within(double budget) {
  const auto none = static_cast<double>(peak(0));
  const auto all = static_cast<double>(peak(trades_.size()));
  const double target = all + budget * (none - all);
  if (none <= target) return take(0);
  // Too few trades at `low`, enough at `high`.
  size_t low = 0, high = trades_.size();
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    (static_cast<double>(peak(middle)) <= target ? high : low) = middle;
  }
  return take(high);
}

}  // namespace rhea::passes
