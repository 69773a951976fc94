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
// Do kernels of the level multiply bf16 by the CPU's dot product? The others widen bf16 to f32,
// which is exact, and multiply that.
constexpr bool multiplies_bf16(Isa isa) { return isa == Isa::avx512_bf16; }
// Best level that CPU and operating system support.
Isa detected_isa();
// What the environment variable RHEA_ISA (plain, avx2, avx512, avx512_bf16; amx_bf16 allows all,
// see base/cpu_tiles.h) allows of it; throws Error on another word. For libraries that choose by
// themselves.
Isa allowed_isa();
// The level that our kernels are chosen for: allowed_isa(), but where RHEA_ISA says nothing avx512
// on CPUs whose dot product of bf16 is slower than multiply-adds of f32: Intel's without matrix
// tiles.
Isa active_isa();
// active_isa() for people: "avx512 (RHEA_ISA; the machine has avx512_bf16)".
std::string isa_in_use();
// Brand string of the CPU, e.g. for log lines; "unknown CPU" when there is none.
std::string cpu_brand();

}  // namespace rhea
