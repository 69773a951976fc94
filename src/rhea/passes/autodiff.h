// Reverse-mode differentiation on the graph, by the vjp cell of each row.
#pragma once
#include <span>
#include <vector>

#include "rhea/ir/graph.h"

namespace rhea::passes {

// Appends to `graph` the nodes that compute d loss / d wrt[i] and returns them, shaped like wrt[i];
// an empty Value where nothing flows. `loss` is a float scalar.
//
// A cotangent has the dtype of its value, or f32 where a product makes a weight gradient: it is
// narrowed only where a row needs it, so a weight cast to bf16 gets an f32 gradient. Sums of
// several cotangents are formed in the widest of their dtypes, in reverse order of the uses. A row
// without vjp is differentiated through its decomposition, whose nodes are appended. Nodes made
// here carry FQN and source line of the node they differentiate. Throws Error when a float value on
// the way has neither vjp nor decomposition, naming op, FQN and line.
std::vector<ir::Value> gradients(ir::Graph& graph, ir::Value loss, std::span<const ir::Value> wrt);

}  // namespace rhea::passes
