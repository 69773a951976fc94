// The text form of graphs: one line per node, one per output.
//
//   %0 = input() {dtype=bf16, layout=0, name="x", shape=[4,8]} : bf16[4,8]  # - -
//   %1 = constant() {dtype=bf16, shape=[4,8], value=2.0} : bf16[4,8]  # head rhea/nn/head.cpp:31
//   %2 = multiply(%0, %1) : bf16[4,8]  # head rhea/nn/head.cpp:31
//   %3.0, %3.1 = attention(...) {...} : bf16[4,2,4], f32[4,2]  # layers.0 rhea/nn/attention.cpp:12
//   output "y" = %2 donates "x"
//
// After '#' stand scope and source line, '-' where there is none. Names with characters that would
// not survive are quoted. parse.h reads it back to the same graph.
#pragma once
#include <string>

#include "rhea/ir/graph.h"

namespace rhea::ir {

std::string to_text(const Graph& graph);
// The line of one node, for messages.
std::string to_text(const Graph& graph, int32_t node);

}  // namespace rhea::ir
