// Removes what need not be computed: dead nodes, equal nodes, and algebra that changes no bit.
#pragma once
#include "rhea/ir/graph.h"

namespace rhea::passes {

// Returns an equal graph with the same inputs and outputs. Exact in floating point: a convert to
// another dtype is never dropped, sums are never reordered. Rules: x*1, x/1, x+(-0), x-0, --x,
// convert to the own dtype, full slices, reshape of a reshape, identity transposes, broadcasts and
// reshapes, elementwise arithmetic and converts of splat constants (in the dtype of the op), common
// subexpressions (op, attributes and operands equal; the first one's FQN is kept), dead code, and
// the forward loss that its gradient op returns as well (linear_cross_entropy).
ir::Graph simplify(const ir::Graph& graph);

}  // namespace rhea::passes
