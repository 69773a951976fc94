// Activation recomputation: which forward values backward computes again instead of keeping them.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/ir/graph.h"

namespace rhea::passes {

// Memory that a graph needs for its values.
struct GraphBytes {
  int64_t live = 0;   // most that is alive in one step
  int64_t arena = 0;  // the same values placed by plan_memory
};

struct RematPolicy {
  enum class Mode {
    none,           // keep what backward reads; but SwiGLU's product, which costs one pass over
                    // memory, is computed again in every mode
    full,           // keep each block's input only
    selective,      // keep what is dear: products, attention, maxima; but not every second product
    memory_budget,  // the least work whose peak is at most peak(full) + budget * (peak(none) -
                    // peak(full))
  };
  Mode mode = Mode::none;
  // selective: products whose FQN contains one of these texts are computed again and are not
  // counted among the block's products.
  std::vector<std::string> force_recompute_products;
  bool texts_must_match = true;  // a text that is in the FQN of no product is an error
  double memory_budget = 0.5;    // in [0,1]
  // Says what the executor will give a graph, clusters and views counted. Without it, the sum of
  // the results of its nodes decides.
  std::function<GraphBytes(const ir::Graph&)> planned_bytes;
};

struct RematResult {
  ir::Graph graph;
  int64_t num_recomputed = 0;   // nodes that run a second time
  double recomputed_flops = 0;  // of these
  int64_t peak_bytes = 0;       // largest sum of intermediate values alive in one step
};

// `graph` holds forward and backward of one microbatch: nodes up to the one that makes output
// `loss` are forward, the rest backward. What depends on parameters alone was hoisted out before,
// or it would be computed again too. Blocks are the scopes "layers.<i>"; only values inside a block
// are ever recomputed, and what one block hands to the next one is always kept.
//
// The chain of nodes behind a value that is not kept is repeated right before backward first needs
// it, under the same FQN and source line, reading kept values through optimization_barrier so that
// no later pass joins it with the first computation. The same kernels on the same operands: no mode
// changes a bit.
RematResult remat(const ir::Graph& graph, std::string_view loss, const RematPolicy& policy);

struct BudgetPoint {
  double budget = 0;
  double recomputed_flops = 0;
  GraphBytes bytes;
};
// What memory_budget costs and saves at 0, 0.05, ..., 1.
std::vector<BudgetPoint> budget_curve(const ir::Graph& graph, std::string_view loss,
                                      const RematPolicy& policy = {});

}  // namespace rhea::passes
