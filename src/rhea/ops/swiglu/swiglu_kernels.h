// CPU kernels of swiglu and its gradient, fastest first.
#pragma once
#include <vector>

#include "rhea/ir/cpu_kernel.h"

namespace rhea::ops {

std::vector<ir::CpuKernel> swiglu_kernels();
std::vector<ir::CpuKernel> swiglu_grad_kernels();

}  // namespace rhea::ops
