// Joins elementwise ops and ops over rows into clusters that run as one pass over memory.
#pragma once
#include <functional>

#include "rhea/ir/graph.h"

namespace rhea::passes {

// Returns an equal graph in which elementwise ops and ops over rows of the last dim (norms and
// their gradients, sums and maxima of rows, softmax, rotary embedding), with the splat constants
// and broadcasts they read, are joined with their producers into `cluster` nodes where that saves
// memory traffic. Each value is rounded to its own type inside, so no bit changes. A row op that
// has no neighbour to join keeps its own kernel. A value that a node between producer and consumer
// needs, or whose operands would have to be kept longer than it saves, is not joined.
ir::Graph fuse(const ir::Graph& graph);
// The same, but nodes for which `alone` is true are left as they are.
ir::Graph fuse_except(const ir::Graph& graph, const std::function<bool(const ir::Node&)>& alone);

}  // namespace rhea::passes
