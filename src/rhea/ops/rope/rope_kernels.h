// CPU kernels of rope, fastest first.
#pragma once
#include <vector>

#include "rhea/ir/cpu_kernel.h"
#include "rhea/ir/row_op.h"

namespace rhea::ops {

std::vector<ir::CpuKernel> rope_kernels();
ir::RowPlan rope_tile(const ir::OpInstance& op, Isa isa);  // rope on row tiles

}  // namespace rhea::ops
