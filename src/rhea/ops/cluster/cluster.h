// A cluster: elementwise ops, broadcasts, splat constants, and ops over rows of the last dim
// (norms, reductions, rotations) as one node, run as one pass over memory. Made by the fuse pass;
// the body is an attribute.
#pragma once
#include "rhea/ir/graph.h"

namespace rhea::ops {

// attr body: see cluster/body.h; what may be in it: cluster/space.h. Operands and results of any
// number.
extern const ir::OpDef kCluster;

}  // namespace rhea::ops
