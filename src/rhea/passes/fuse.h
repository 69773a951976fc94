// Joins elementwise ops into clusters that run as one pass over memory.
#pragma once
#include "rhea/ir/graph.h"

namespace rhea::passes {

// Returns an equal graph in which elementwise ops (with the splat constants and broadcasts they
// read) are joined with their producers into `cluster` nodes where that saves memory traffic. Each
// value is rounded to its own type inside, so no bit changes. Ops with kernels of their own
// (norms, attention, products) stay as they are. A value that a node between producer and consumer
// needs, or whose operands would have to be kept longer than it saves, is not joined.
ir::Graph fuse(const ir::Graph& graph);

}  // namespace rhea::passes
