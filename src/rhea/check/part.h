// A part of a traced graph as a graph of its own, with its gradients.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "rhea/ir/graph.h"
#include "rhea/nn/trace.h"

namespace rhea::check {

// The nodes between `arguments` and `results` with everything else they need. Floating-point
// arguments become inputs "x0", "x1", ...; whole numbers (positions, places of experts) are
// computed as in the whole graph, from the inputs that they come from or from floating-point
// values, which become inputs named by their scope. Inputs of the whole graph keep their names.
//
// Outputs are the results "y0", "y1", ...; for `gradients` also "dx0", ... of the arguments and
// "d <fqn>" of the parameters, for cotangents that are inputs "dy0", ... . Throws Error where a row
// on the way has no gradient.
struct PartOptions {
  std::span<const ir::Value> arguments, results;
  std::span<const nn::Parameter> parameters;
  bool gradients = true;
};
ir::Graph cut_part(const ir::Graph& whole, const PartOptions& options);

// Is the part nothing but movement of data and rotation, so that not a bit may change?
bool only_moves(const ir::Graph& graph);

}  // namespace rhea::check
