// CPU kernels of the normalisation rows, fastest first.
#pragma once
#include <vector>

#include "rhea/ir/cpu_kernel.h"

namespace rhea::ops {

std::vector<ir::CpuKernel> rms_norm_kernels();
std::vector<ir::CpuKernel> rms_norm_grad_kernels();
std::vector<ir::CpuKernel> layer_norm_kernels();
std::vector<ir::CpuKernel> layer_norm_grad_kernels();

}  // namespace rhea::ops
