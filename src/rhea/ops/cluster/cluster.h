// A cluster: several elementwise ops, broadcasts of small operands and splat constants as one node,
// run as one pass over memory. Made by the fuse pass; the body is an attribute.
#pragma once
#include <optional>

#include "rhea/ir/graph.h"

namespace rhea::ops {

// attr body: see cluster/body.h. Operands and results of any number.
extern const ir::OpDef kCluster;

// How an operand smaller than the space of the cluster is spread over it: element i of the space
// reads operand element (i / repeat) % period.
struct Spread {
  int64_t repeat = 1;
  int64_t period = 1;
};
// Of a broadcast_in_dim, if it is of this kind: scalars, vectors along leading or trailing dims.
std::optional<Spread> spread_of(const ir::Type& operand, const ir::Node& broadcast);

// May this node be part of a cluster over the space of its result? Elementwise ops of f32, bf16,
// f16 and flags, splat constants, and broadcasts that have a Spread.
bool can_cluster(const ir::Graph& graph, const ir::Node& node);

}  // namespace rhea::ops
