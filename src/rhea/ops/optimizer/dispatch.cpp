// Chooses the copy of the optimizer loops for an instruction set.
#include "rhea/ops/optimizer/kernels.h"

namespace rhea::isa_plain {
extern const ops::OptimizerKernels kOptimizerKernels;
}
#if defined(__x86_64__)
namespace rhea::isa_avx2 {
extern const ops::OptimizerKernels kOptimizerKernels;
}
namespace rhea::isa_avx512 {
extern const ops::OptimizerKernels kOptimizerKernels;
}
namespace rhea::isa_avx512_bf16 {
extern const ops::OptimizerKernels kOptimizerKernels;
}
#endif

namespace rhea::ops {

const OptimizerKernels& optimizer_kernels([[maybe_unused]] Isa isa) {
#if defined(__x86_64__)
  if (isa >= Isa::avx512_bf16) return isa_avx512_bf16::kOptimizerKernels;
  if (isa >= Isa::avx512) return isa_avx512::kOptimizerKernels;
  if (isa >= Isa::avx2) return isa_avx2::kOptimizerKernels;
#endif
  return isa_plain::kOptimizerKernels;
}

}  // namespace rhea::ops
