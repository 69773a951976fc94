// What running a node once more costs.
#pragma once
#include "rhea/ir/graph.h"

namespace rhea::passes {

// The row's cost; without one, one flop per element of the first result.
ir::Cost node_cost(const ir::Graph& graph, const ir::Node& node);

// In flops. Traffic counts as the flops that a machine does meanwhile, so that a cast is not free.
double recompute_cost(const ir::Graph& graph, const ir::Node& node);

}  // namespace rhea::passes
