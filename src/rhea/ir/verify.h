// Checks that a graph is what passes and executors may rely on.
#pragma once
#include "rhea/ir/graph.h"

namespace rhea::ir {

// Throws Error naming the node (op, FQN, source line) and what is wrong: operands come before their
// readers; every row infers the types that the node holds; input names are unique and belong to
// input nodes; donated inputs exist, have the output's type, are donated once, and are read by no
// node that needs the new value (such a read could not run before the write).
void verify(const Graph& graph);

}  // namespace rhea::ir
