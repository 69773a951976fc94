// The kernels of the attention rows, fastest first.
#include "rhea/ops/attention/attention_kernels.h"

namespace rhea::ops {

std::vector<ir::CpuKernel> attention_kernels() { return {attention_plain_kernel()}; }
std::vector<ir::CpuKernel> attention_grad_kernels() { return {attention_grad_plain_kernel()}; }

}  // namespace rhea::ops
