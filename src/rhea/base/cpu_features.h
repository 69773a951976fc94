// Instruction sets that kernels are written for, and what this machine has. Public: a kernel from
// outside says which one it needs (ir::CpuKernel::isa).
#pragma once
#include <string>
#include <string_view>

namespace rhea {

// Ordered: each level includes the ones before it.
enum class Isa : int { plain = 0, avx2 = 1, avx512 = 2, avx512_bf16 = 3 };

// "avx512_bf16".
std::string_view isa_name(Isa isa);
// Best level that CPU and operating system support.
Isa detected_isa();
// detected_isa() capped by the environment variable RHEA_ISA (plain, avx2, avx512, avx512_bf16;
// amx_bf16 caps nothing, see base/cpu_tiles.h); throws Error on another word.
Isa active_isa();
// Brand string of the CPU, e.g. for log lines; "unknown CPU" when there is none.
std::string cpu_brand();

}  // namespace rhea
