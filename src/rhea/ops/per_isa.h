// Kernels that exist once per instruction set.
#pragma once
#include <initializer_list>
#include <string_view>
#include <vector>

#include "rhea/ir/cpu_kernel.h"

namespace rhea::ops {

// One CpuKernel "<name>_<isa>" per entry of `isas` (fastest first) with one planning function.
using PlanForIsa = ir::KernelPlan (*)(const ir::OpInstance&, Isa);
std::vector<ir::CpuKernel> kernels_per_isa(std::string_view name, PlanForIsa plan,
                                           std::initializer_list<Isa> isas = {
                                               Isa::avx512, Isa::avx2, Isa::plain});

}  // namespace rhea::ops
