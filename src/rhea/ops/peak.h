// What this machine's cores can multiply and its memory can move: the denominators of MFU, of
// profiles and of every share in bench/.
#pragma once
#include <filesystem>
#include <optional>

#include "rhea/base/dtype.h"
#include "rhea/base/thread_pool.h"

namespace rhea::ops {

// Whether to take what an earlier process measured, or to measure anew. What is kept is replaced by
// what is faster alone: other programs make a measurement smaller, never larger.
enum class Measure { once, again };

// Floating point operations per second of all threads of the pool together, from chains of fused
// multiply-adds (f32) or of bf16 dot products in registers, by the time that each thread ran. Takes
// about 0.2 s the first time; later processes read it from `cache_folder`/peak.txt (an empty
// folder: nothing is kept), keyed by CPU, instruction set and number of threads. Where active_isa()
// does not multiply bf16, it has the peak of f32.
double measured_peak_flops(DType dtype, ThreadPool& pool, const std::filesystem::path& cache_folder,
                           Measure when = Measure::once);

// What an earlier process kept of it; empty: nothing. Takes no time.
std::optional<double> kept_peak_flops(DType dtype, const ThreadPool& pool,
                                      const std::filesystem::path& cache_folder);

// The measurement itself, without the cache.
double measure_peak_flops(DType dtype, ThreadPool& pool, double seconds = 0.2);

// Bytes per second that all threads together read and write in a pass a += b over arrays far larger
// than the caches (12 bytes per element: operands and result, as the costs of ops count). Cached
// like the peak.
double measured_bandwidth(ThreadPool& pool, const std::filesystem::path& cache_folder,
                          Measure when = Measure::once);
double measure_bandwidth(ThreadPool& pool, double seconds = 0.2);

}  // namespace rhea::ops
