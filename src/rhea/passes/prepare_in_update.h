// Lets the optimizer write what the next step reads, instead of a pass over the new parameters.
#pragma once
#include "rhea/ir/graph.h"

namespace rhea::passes {

// `update` replaces parameters (outputs that donate the input of their name); `prepare` computes
// casts and packed copies of parameters. Returns `update` with the outputs of `prepare` on the new
// parameters added under their names. Copies of a matrix that adam updates are written in the same
// pass over memory (adam_pack). Bits are those of running `update`, then `prepare`.
ir::Graph prepare_in_update(const ir::Graph& update, const ir::Graph& prepare);

}  // namespace rhea::passes
