// CPU kernels of the attention rows, fastest first.
#pragma once
#include <vector>

#include "rhea/ir/cpu_kernel.h"

namespace rhea::ops {

std::vector<ir::CpuKernel> attention_kernels();
std::vector<ir::CpuKernel> attention_grad_kernels();

// The last entry of each list (attention_plain.cpp).
ir::CpuKernel attention_plain_kernel();
ir::CpuKernel attention_grad_plain_kernel();

}  // namespace rhea::ops
