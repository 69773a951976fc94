// Moves readers of a donated input before the node that overwrites it.
#pragma once
#include "rhea/ir/graph.h"

namespace rhea::passes {

// The same nodes in an order in which, where that is possible, every reader of a donated input runs
// before the node that makes the donating output. The given order is kept wherever it is already
// right. Readers that need the new value themselves stay behind it (the executor copies then).
ir::Graph order_for_donation(const ir::Graph& graph);

}  // namespace rhea::passes
