// What a node costs, also where its row does not say.
#pragma once
#include "rhea/ir/row_cells.h"

namespace rhea::ops {

// The row's cost; without one the flops of its decomposition with the bytes of operands and
// results; without both one flop per element of the results. Throws as ir::call_decompose.
ir::Cost cost_of(const ir::OpInstance& node, ir::Place place = {});

}  // namespace rhea::ops
