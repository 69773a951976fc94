// What a node costs, also where its row does not say.
#pragma once
#include "rhea/ir/op_def.h"

namespace rhea::ops {

// The row's cost; without one the flops of its decomposition with the bytes of operands and
// results; without both one flop per element of the results.
ir::Cost cost_of(const ir::OpInstance& node);

}  // namespace rhea::ops
