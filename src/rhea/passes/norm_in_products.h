// Takes the norm of the gradients from the products that write them.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "rhea/base/cpu_features.h"
#include "rhea/ir/graph.h"

namespace rhea::passes {

// Where an output is the gradient of a linear layer's weight as a product has left it (dot_general
// over dim 0 of two matrices, f32), the node becomes weight_grad_squares with the same value, and
// the graph gains an output f64[] of the name that `squares_name` gives for that of the gradient
// (empty: not a gradient, left alone). Gradients that something else finishes (a sum over two uses
// of a weight, rows of an embedding) stay as they are, and so do those whose dot_general another
// kernel runs on a CPU with `isa` (oneDNN below AVX-512 and on matrix tiles, one from outside).
// Nothing changes where a kernel from outside computes the norm: it sums squares itself. The norm
// may differ in its last bit: its squares are added in another order.
ir::Graph norm_in_products(const ir::Graph& graph, Isa isa,
                           const std::function<std::string(std::string_view output)>& squares_name);

}  // namespace rhea::passes
