// What must hold for every graph between passes.
#pragma once
#include "rhea/ir/graph.h"

namespace rhea::ir {

// Throws Error that names the rule and prints the node (or output) which breaks it. Rules:
//  1. Operands are results of earlier nodes (so the order of nodes is an order of execution).
//  2. Attributes are those of the row, each of its kind, and the stored types are the inferred
//     ones.
//  3. Every input node is listed once in Graph::inputs() under its own name; names are unique and
//     not empty.
//  4. Outputs have unique names and name existing results.
//  5. An output that donates an input X: X exists and is donated by no other output; the types are
//     equal; the value is X itself or a result of a node that is no input.
//  6. Donations can be executed in place. Let P be the node that makes the output which donates X.
//     Every other reader of X runs before P. Taking "an operand's node before its reader" and
//     "another reader of X before P" as arrows, there is no cycle; and no other output has X as its
//     value (it would be read after P wrote it).
void verify(const Graph& graph);

}  // namespace rhea::ir
