// How long a step will take, from the costs of its kernel calls.
#pragma once
#include "rhea/exec/cpu/profile.h"

namespace rhea {

// The call's time at the machine's limits over the share of them that kernels of this op reach.
// The shares are the profiler's own column "of the limit", measured on the runs of the module
// bench with AVX-512 and bf16 instructions (bench/README.md); elsewhere they are a guess.
double predicted_seconds(const exec::cpu::NodeReport& node, const exec::cpu::Limits& limits);

}  // namespace rhea
