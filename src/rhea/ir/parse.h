// Reads the text form of graphs (print.h).
#pragma once
#include <functional>
#include <string_view>

#include "rhea/ir/graph.h"

namespace rhea::ir {

// Finds a row by its name; null when there is none. (The op table lies above this folder:
// ops::find_op.)
using FindOp = std::function<const OpDef*(std::string_view)>;

// The graph of `text`. Types in the text are compared with the inferred ones. Throws Error with
// line and column for anything else than a valid graph, whatever the bytes are. Dims are at most
// 2^40 and tensors at most 2^60 bytes, so that sizes can be computed without overflow.
Graph parse(std::string_view text, const FindOp& find_op);

}  // namespace rhea::ir
