// The order in which a training graph runs when some forward nodes run again in backward, and what
// is alive then. Shared by the parts of remat.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "rhea/ir/graph.h"
#include "rhea/passes/plan_memory.h"

namespace rhea::passes {

// Where the nodes of a training graph lie.
struct Regions {
  Regions(const ir::Graph& graph, std::string_view loss);

  int32_t backward_begin = 0;  // nodes from here on are backward
  int32_t num_blocks = 0;
  std::vector<int32_t> block;      // by node: number of its block "layers.<i>", -1 outside
  std::vector<bool> recomputable;  // by node: forward, inside a block, of no use to another block
};

struct ScheduledNode {
  int32_t node = 0;
  bool again = false;  // the second time
};

// Nodes in order; a node of `recompute` runs again right before the first backward node that needs
// it, after those that it needs itself.
std::vector<ScheduledNode> schedule(const ir::Graph& graph, const Regions& regions,
                                    const std::vector<bool>& recompute);

// True when a backward node, or a node that runs again, reads the second computation of `operand`.
bool reads_second(const Regions& regions, const std::vector<bool>& recompute, ScheduledNode reader,
                  ir::ValueId operand);

// Lifetimes of intermediate values, counted in entries of the schedule. Inputs, constants and
// outputs of the graph lie elsewhere; views live in their operand.
std::vector<Lifetime> lifetimes(const ir::Graph& graph, const Regions& regions,
                                const std::vector<bool>& recompute,
                                const std::vector<ScheduledNode>& order);
int64_t peak_bytes(const std::vector<Lifetime>& lifetimes, size_t num_steps);

// The result is the operand's memory, or a part of it.
bool is_view(const ir::Node& node);

}  // namespace rhea::passes
