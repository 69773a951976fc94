// Right operands of products that are parameters get the packed layout that the product kernels
// read.
#pragma once
#include <functional>
#include <string_view>

#include "rhea/base/cpu_features.h"
#include "rhea/ir/graph.h"

namespace rhea::passes {

// For each dot_general whose right operand is a parameter, or a chain of one-operand nodes over
// one, inserts a pack node of the layout its contraction needs. Products of few rows are left
// alone: packing would cost more than it saves; so are those that run on matrix tiles, which read
// the operand in rows on CPUs of `isa`.
ir::Graph pack_weights(const ir::Graph& graph,
                       const std::function<bool(std::string_view input)>& is_parameter, Isa isa);

}  // namespace rhea::passes
