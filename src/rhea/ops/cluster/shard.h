// Sharding of a cluster from that of its ops.
#pragma once
#include <string>

#include "rhea/ir/graph.h"

namespace rhea::ops {

// Factors of a body (its inputs and outputs are operands and results) as OpDef::shard gives them:
// dims that any op of the body ties together have one letter, and are whole if any op needs so, or
// if an op of the body reads a sum over them.
std::string shard_of_body(const ir::Graph& body);

}  // namespace rhea::ops
