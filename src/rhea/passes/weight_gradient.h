// Which nodes are gradients of weights as a product leaves them.
#pragma once
#include "rhea/base/cpu_features.h"
#include "rhea/ir/graph.h"

namespace rhea::passes {

// Does the node make the gradient of a linear layer's weight (dot_general over dim 0 of two
// matrices, f32), by a kernel that on a CPU with `isa` runs `row` as well? `row` takes the two
// matrices and, where `adds`, what it adds to. A kernel from outside keeps its products.
bool is_weight_gradient(const ir::Graph& graph, const ir::Node& node, const ir::OpDef& row,
                        bool adds, Isa isa);

}  // namespace rhea::passes
