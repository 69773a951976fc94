// The identity that no pass sees through.
#pragma once
#include <source_location>

#include "rhea/ir/graph.h"

namespace rhea::ops {

// Computing the same thing on both sides of it stays two computations. Costs nothing on the CPU.
// Recomputation puts it on what it reads; models have no use for it.
extern const ir::OpDef kOptimizationBarrier;
ir::Value optimization_barrier(ir::Value x,
                               std::source_location where = std::source_location::current());

}  // namespace rhea::ops
