// Which way a node of a training step works: forward, back, or forward once more.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/ir/graph.h"

namespace rhea::passes {

enum class Direction : uint8_t {
  forward,
  recompute,           // of the backward pass, a second time
  input_gradient,      // what the gradient of another module is computed from
  weight_gradient,     // what the graph gives, and what only it is computed from
  both_gradients,      // rms_norm_grad: one op makes them
  loss_and_gradients,  // the head with the loss: its product forward and both back in one op
};
std::string_view name_of(Direction direction);

// The source line of a node with the word that tells where it comes from; autodiff and remat set
// it, every pass copies it, and errors show it: "feed_forward.cpp:12 (gradient)".
std::string gradient_line(std::string_view location);
std::string recomputed_line(std::string_view location);

// One per node. A node that reads a gradient is one, marked or not. A graph without such lines is
// all forward. A cluster has the line of its last member.
std::vector<Direction> directions(const ir::Graph& graph);

}  // namespace rhea::passes
