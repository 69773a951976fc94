// The recomputation that fits a memory budget.
#pragma once
#include <functional>
#include <map>
#include <vector>

#include "rhea/ir/graph.h"
#include "rhea/passes/remat_schedule.h"

namespace rhea::passes {

// Every useful trade of memory against work in all blocks, best return first. Taking the first k
// trades costs more and leaves fewer bytes with each k.
class BudgetTrades {
 public:
  // `always` are recomputed whatever is taken. `live_bytes` of the graph when the marked nodes are
  // recomputed.
  BudgetTrades(const ir::Graph& graph, const Regions& regions, std::vector<bool> always,
               std::function<int64_t(const std::vector<bool>&)> live_bytes);

  // The nodes to recompute at `budget` in [0,1]: the fewest trades whose peak is at most
  // peak(all) + budget * (peak(none) - peak(all)).
  std::vector<bool> within(double budget);

 private:
  struct Trade {
    double bytes_per_cost;
    int32_t block;
    int32_t choice;  // of the block, from 1
  };
  std::vector<bool> take(size_t num_trades) const;
  int64_t peak(size_t num_trades);

  std::vector<bool> always_;
  std::function<int64_t(const std::vector<bool>&)> live_bytes_;
  std::map<size_t, int64_t> peaks_;          // by number of trades
  std::vector<std::vector<int32_t>> nodes_;  // by block, recomputable ones
  std::vector<std::vector<std::vector<bool>>>
      choices_;  // by block and choice, by node of the block
  std::vector<Trade> trades_;
};

}  // namespace rhea::passes
