// CPU kernels of the normalisation rows, fastest first, and their form on row tiles.
#pragma once
#include <vector>

#include "rhea/ir/cpu_kernel.h"
#include "rhea/ir/row_op.h"

namespace rhea::ops {

std::vector<ir::CpuKernel> rms_norm_kernels();
std::vector<ir::CpuKernel> rms_norm_grad_kernels();
std::vector<ir::CpuKernel> layer_norm_kernels();
std::vector<ir::CpuKernel> layer_norm_grad_kernels();

ir::RowPlan rms_norm_tile(const ir::OpInstance& op, Isa isa);
ir::RowPlan rms_norm_grad_tile(const ir::OpInstance& op, Isa isa);
ir::RowPlan layer_norm_tile(const ir::OpInstance& op, Isa isa);
ir::RowPlan layer_norm_grad_tile(const ir::OpInstance& op, Isa isa);

}  // namespace rhea::ops
