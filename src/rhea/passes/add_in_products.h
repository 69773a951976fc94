// Adds gradients to those of the microbatches before by the nodes that make them.
#pragma once
#include "rhea/base/cpu_features.h"
#include "rhea/ir/graph.h"

namespace rhea::passes {

// Where an output is an add to the input that it donates, of a value that nothing else reads, the
// add and the node that makes the value become one, which adds to the input where it lies: the
// gradient of a linear layer's weight becomes weight_grad_add, and that of a table embedding_grad
// with a third operand, which touches the rows of the tokens only. No bit changes: both add what
// they have finished. Gradients whose makers add to their result while it grows (the head, chunk by
// chunk) stay as they are, for their sums would round otherwise; so do products that another kernel
// runs on a CPU with `isa` (oneDNN below AVX-512, one from outside), and all of it where a kernel
// from outside adds.
ir::Graph add_in_products(const ir::Graph& graph, Isa isa);

}  // namespace rhea::passes
