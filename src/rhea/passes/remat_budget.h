// The recomputation that fits a memory budget.
#pragma once
#include <vector>

#include "rhea/ir/graph.h"
#include "rhea/passes/remat_schedule.h"

namespace rhea::passes {

// Every useful trade of memory against work in all blocks, best return first. Taking the first k
// trades costs more and leaves fewer bytes with each k.
class BudgetTrades {
 public:
  BudgetTrades(const ir::Graph& graph, const Regions& regions);

  // The nodes to recompute at `budget` in [0,1]: the fewest trades whose peak is at most
  // peak(all) + budget * (peak(none) - peak(all)).
  std::vector<bool> within(double budget) const;

 private:
  struct Trade {
    double bytes_per_cost;
    int32_t block;
    int32_t choice;  // of the block, from 1
  };
  std::vector<bool> take(size_t num_trades) const;
  int64_t peak(size_t num_trades) const;

  const ir::Graph& graph_;
  const Regions& regions_;
  std::vector<std::vector<int32_t>> nodes_;  // by block, recomputable ones
  std::vector<std::vector<std::vector<bool>>>
      choices_;  // by block and choice, by node of the block
  std::vector<Trade> trades_;
};

}  // namespace rhea::passes
