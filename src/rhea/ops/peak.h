// What this machine's cores can multiply: the denominator of MFU and of every share in bench/.
#pragma once
#include "rhea/base/dtype.h"
#include "rhea/base/thread_pool.h"

namespace rhea::ops {

// Floating point operations per second of all threads of the pool together, from chains of fused
// multiply-adds (f32) or of bf16 dot products in registers. Takes about 0.2 s the first time; later
// processes read it from a cache folder
// ($XDG_CACHE_HOME or ~/.cache, then rhea/peak.txt), keyed by CPU, instruction set and number of
// threads. A dtype without instructions of its own has the peak of f32.
double measured_peak_flops(DType dtype, ThreadPool& pool);

// The measurement itself, without the cache.
double measure_peak_flops(DType dtype, ThreadPool& pool, double seconds = 0.2);

}  // namespace rhea::ops
