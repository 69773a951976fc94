// Parts of the attention rows that have files of their own.
#pragma once
#include <vector>

#include "rhea/ir/op_def.h"

namespace rhea::ops {

// f64, with a whole score row per query (attention_reference.cpp).
void attention_reference(const ir::ReferenceArgs& args);
void attention_grad_reference(const ir::ReferenceArgs& args);

// Cases of both rows: for the gradient o and lse are computed from the other operands
// (attention_samples.cpp).
std::vector<ir::Sample> attention_samples(bool grad);

}  // namespace rhea::ops
