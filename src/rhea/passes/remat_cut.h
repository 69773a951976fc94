// The best trades of memory against work inside one block.
#pragma once
#include <cstdint>
#include <vector>

namespace rhea::passes {

// One block as numbers. Node k reads values of nodes before it, or of outside, which are not
// listed: they are there anyway.
struct BlockProblem {
  struct Result {
    int64_t bytes = 0;
    bool read_by_backward = false;
  };
  struct Node {
    double cost = 0;    // of computing it again
    bool view = false;  // costs nothing, has no memory of its own
    std::vector<Result> results;
    std::vector<std::pair<int32_t, int32_t>> operands;  // node, result
  };
  std::vector<Node> nodes;
};

struct BlockChoice {
  std::vector<bool> recompute;  // by node
  double bytes = 0;             // kept from forward to backward
  double cost = 0;              // of what is computed again
};

// The choices that minimise bytes + lambda * cost for some lambda: from keeping all that backward
// reads to keeping nothing. Each has fewer bytes and more cost than the one before, at falling
// returns.
std::vector<BlockChoice> best_choices(const BlockProblem& problem);

}  // namespace rhea::passes
