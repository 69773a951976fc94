// The text of a cluster's body: the ops it runs, one after another.
//
//   multiply(0,1);convert(2){dtype=bf16};->3,2
//
// Values are numbered: the operands of the cluster first, then each statement's results. After "->"
// the results of the cluster.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/ir/graph.h"

namespace rhea::ops {

// Text of a graph whose inputs and outputs, in order, are the operands and results of the cluster.
std::string cluster_body(const ir::Graph& graph);

// Adds the body's nodes to `graph` and returns the cluster's results. Throws Error naming the
// statement that does not parse.
std::vector<ir::Value> inline_cluster(ir::Graph& graph, std::span<const ir::Value> operands,
                                      std::string_view body);

// The nodes of a body, without its operands.
std::vector<int32_t> body_nodes(const ir::Graph& body);

}  // namespace rhea::ops
