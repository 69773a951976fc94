// CPU kernels of rope, fastest first.
#pragma once
#include <vector>

#include "rhea/ir/cpu_kernel.h"

namespace rhea::ops {

std::vector<ir::CpuKernel> rope_kernels();

}  // namespace rhea::ops
