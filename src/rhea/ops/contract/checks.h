// The checks that contract.cpp lists.
#pragma once
#include "rhea/ops/contract/case.h"
#include "rhea/ops/contract/contract.h"

namespace rhea::ops {

void check_complete(const OpDef& op, Findings& findings);
void check_sample_types(const OpDef& op, Findings& findings);
void check_definitions(const OpDef& op, Findings& findings);
void check_kernels(const OpDef& op, Findings& findings);
void check_tiles(const OpDef& op, Findings& findings);
void check_nonfinite(const OpDef& op, Findings& findings);
void check_gradient(const OpDef& op, Findings& findings);
void check_halves(const OpDef& op, Findings& findings);
void check_cost(const OpDef& op, Findings& findings);
void check_text(const OpDef& op, Findings& findings);
void check_damaged_text(const OpDef& op, Findings& findings);

}  // namespace rhea::ops
