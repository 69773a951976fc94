// Lists of vector kernels that exist once per instruction set and take f32, bf16 and f16.
#pragma once
#include <string>

#include "rhea/base/dtype.h"
#include "rhea/ops/element.h"
#include "rhea/ops/per_isa.h"

// The functions of all instruction sets: RHEA_PER_ISA_BF16 where there is a copy for the bf16
// instructions, index Isa; RHEA_PER_ISA where there is none, index vector_isa. Elsewhere than on
// x86 there is the plain one.
#if defined(__x86_64__)
#define RHEA_PER_ISA(function) \
  { isa_plain::function, isa_avx2::function, isa_avx512::function }
#define RHEA_PER_ISA_BF16(function) \
  { isa_plain::function, isa_avx2::function, isa_avx512::function, isa_avx512_bf16::function }
#else
#define RHEA_PER_ISA(function) \
  { isa_plain::function, isa_plain::function, isa_plain::function }
#define RHEA_PER_ISA_BF16(function) \
  { isa_plain::function, isa_plain::function, isa_plain::function, isa_plain::function }
#endif

namespace rhea::ops {

// Index of the functions of RHEA_PER_ISA that a CPU with `isa` runs.
inline size_t vector_isa(Isa isa) {
  return static_cast<size_t>(isa < Isa::avx512 ? isa : Isa::avx512);
}

// The code of an element type for row kernels (row_vector.h).
inline int row_dtype(DType dtype) { return static_cast<int>(dtype); }
static_assert(static_cast<int>(DType::f32) == 0 && static_cast<int>(DType::bf16) == 1 &&
              static_cast<int>(DType::f16) == 2);

// kernels_per_isa that refuse f64; to be followed by a kernel that takes everything. The copy for
// bf16 instructions only differs for bf16.
inline std::vector<ir::CpuKernel> row_kernels(std::string_view name, PlanForIsa plan) {
  auto kernels =
      kernels_per_isa(name, plan, {Isa::avx512_bf16, Isa::avx512, Isa::avx2, Isa::plain});
  for (ir::CpuKernel& kernel : kernels)
    kernel.accepts = [isa = kernel.isa](const ir::OpInstance& op) -> std::string {
      if (op.in[0].dtype == DType::f64) return "f64 has no vector kernel";
      if (isa == Isa::avx512_bf16 && op.in[0].dtype != DType::bf16) return "no bf16 operands";
      return "";
    };
  return kernels;
}

// The same, and the kernel that takes everything: what `plain` plans, run for elements T by
// run_of.operator()<T>().
template <class RunOf>
std::vector<ir::CpuKernel> row_kernels(std::string_view name, PlanForIsa plan,
                                       std::string_view plain_name,
                                       ir::KernelPlan (*plain)(const ir::OpInstance&),
                                       RunOf run_of) {
  auto kernels = row_kernels(name, plan);
  kernels.push_back({.name = plain_name, .plan = [=](const ir::OpInstance& op) {
                       ir::KernelPlan made = plain(op);
                       made.run = dispatch_float(op.in[0].dtype, run_of);
                       return made;
                     }});
  return kernels;
}

}  // namespace rhea::ops
