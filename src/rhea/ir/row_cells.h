// Cells of a row, called with checks of what they give: the row may have come from outside, and a
// wrong result would be blamed on the nodes beside it.
#pragma once
#include <span>
#include <vector>

#include "rhea/ir/graph.h"

namespace rhea::ir {

// The node that messages name; none where there is no node yet.
struct Place {
  const Graph* graph = nullptr;
  const Node* node = nullptr;
};

// op.op->decompose on `operands` of `into`. Throws Error naming op, types, FQN and line where it
// throws, or gives another number of results than op.out, an empty value, one of another graph or
// of another type.
std::vector<Value> call_decompose(const OpInstance& op, Graph& into,
                                  std::span<const Value> operands, Place place = {});

// op.vjp. Throws Error likewise where it gives another number of cotangents than there are
// operands, a value of another graph, or for a floating-point operand a cotangent of another shape,
// or of a dtype that is neither the operand's nor f32.
std::vector<Value> call_vjp(const OpDef& op, const VjpArgs& args, Place place = {});

// op.reference. Throws Error likewise where it leaves a result with another number of elements.
void call_reference(const OpDef& op, const ReferenceArgs& args);

// "\n  in layers.0.feed_forward\n  at my_kernels.cpp:40"; empty without a node.
std::string to_string(Place place);
// "f32[2,3], i32[2]"
std::string to_string(std::span<const Type> types);

}  // namespace rhea::ir
