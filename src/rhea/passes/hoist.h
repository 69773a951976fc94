// Splits off what depends on parameters alone, so that it runs once per optimizer step and not per
// microbatch.
#pragma once
#include <functional>
#include <string_view>

#include "rhea/ir/graph.h"

namespace rhea::passes {

struct Hoisted {
  ir::Graph prepare;  // inputs: parameters; outputs: prepared values
  ir::Graph rest;     // the graph with prepared values as inputs of the same names
};

// Moves casts, packings, joins and other nodes whose operands are parameters (or moved nodes) and
// whose results are not larger than their operands to `prepare`. A prepared value is named by its
// expression, "pack[1](convert[bf16](norm.weight))", so that several graphs over the same
// parameters share them.
Hoisted hoist(const ir::Graph& graph,
              const std::function<bool(std::string_view input)>& is_parameter);

// Adds to `into` the outputs of `from` that it does not have yet.
void merge_prepare(ir::Graph& into, const ir::Graph& from);

}  // namespace rhea::passes
