#include "rhea/ops/peak.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <numeric>
#include <sstream>

#include "rhea/base/cpu_features.h"
#include "rhea/base/error.h"
#include "rhea/base/mapped_file.h"
#include "rhea/ops/run_kernel.h"

namespace rhea::isa_plain {
double peak_chains_f32(int64_t count);
double peak_chains_bf16(int64_t count);
void peak_add(float* to, const float* from, int64_t count);
}  // namespace rhea::isa_plain
#if defined(__x86_64__)
namespace rhea::isa_avx2 {
double peak_chains_f32(int64_t count);
double peak_chains_bf16(int64_t count);
void peak_add(float* to, const float* from, int64_t count);
}  // namespace rhea::isa_avx2
namespace rhea::isa_avx512 {
double peak_chains_f32(int64_t count);
double peak_chains_bf16(int64_t count);
void peak_add(float* to, const float* from, int64_t count);
}  // namespace rhea::isa_avx512
namespace rhea::isa_avx512_bf16 {
double peak_chains_f32(int64_t count);
double peak_chains_bf16(int64_t count);
void peak_add(float* to, const float* from, int64_t count);
}  // namespace rhea::isa_avx512_bf16
#endif

namespace rhea::ops {
namespace {

double (*chains_for(DType dtype))(int64_t) {
  const bool wide = dtype != DType::bf16;
#if defined(__x86_64__)
  switch (active_isa()) {
    case Isa::avx512_bf16:
      return wide ? isa_avx512_bf16::peak_chains_f32 : isa_avx512_bf16::peak_chains_bf16;
    case Isa::avx512:
      return wide ? isa_avx512::peak_chains_f32 : isa_avx512::peak_chains_bf16;
    case Isa::avx2:
      return wide ? isa_avx2::peak_chains_f32 : isa_avx2::peak_chains_bf16;
    default:
      break;
  }
#endif
  return wide ? isa_plain::peak_chains_f32 : isa_plain::peak_chains_bf16;
}

void (*add_for_isa())(float*, const float*, int64_t) {
#if defined(__x86_64__)
  switch (active_isa()) {
    case Isa::avx512_bf16:
      return isa_avx512_bf16::peak_add;
    case Isa::avx512:
      return isa_avx512::peak_add;
    case Isa::avx2:
      return isa_avx2::peak_add;
    default:
      break;
  }
#endif
  return isa_plain::peak_add;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// What the calling thread has run: a loader that fills its queue on the same cores does not count.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

constexpr std::string_view name_of(DType dtype) { return dtype == DType::bf16 ? "bf16" : "f32"; }

// peak.txt: a line per CPU, instruction set, number of threads and `what` was measured.
struct Kept {
  std::filesystem::path file;  // empty: nothing is kept
  std::string key;
  std::string others;  // lines of other keys
  std::optional<double> value;
};

Kept kept(const std::filesystem::path& folder, std::string_view what, const ThreadPool& pool) {
  Kept kept{.file = folder.empty() ? std::filesystem::path() : folder / "peak.txt",
            .key = fmt::format("{}|{}|{}|{}", cpu_brand(), isa_name(active_isa()), what,
                               pool.num_threads()),
            .others = {},
            .value = {}};
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(kept.file, ignored)) return kept;
  std::ifstream in(kept.file);
  std::string line;
  while (std::getline(in, line)) {
    const auto tab = line.rfind('\t');
    if (tab == std::string::npos) continue;
    if (line.substr(0, tab) == kept.key) {
      const double value = std::strtod(line.c_str() + tab + 1, nullptr);
      if (value > 0 && std::isfinite(value)) kept.value = value;
    } else {
      kept.others += line + "\n";
    }
  }
  return kept;
}

// The number that an earlier process kept in `folder` under `what`, or what `measure` finds.
double cached(const std::filesystem::path& folder, std::string_view what, const ThreadPool& pool,
              Measure when, const std::function<double()>& measure) {
  const Kept before = kept(folder, what, pool);
  if (before.value && when == Measure::once) return *before.value;
  const double found = measure();
  if (!before.file.empty() && found > before.value.value_or(0)) {
    try {
      std::filesystem::create_directories(before.file.parent_path());
      write_file_atomic(before.file,
                        before.others + fmt::format("{}\t{:.6g}\n", before.key, found));
    } catch (const std::exception&) {
      // A cache that cannot be written costs 0.2 s next time and nothing else.
    }
  }
  return found;
}

}  // namespace

double measure_peak_flops(DType dtype, ThreadPool& pool, double seconds) {
  const auto chains = chains_for(dtype);
  double best = 0;
  const double end = seconds_now() + seconds;
  do {
    // Long enough that each thread takes one, short enough for several tries: the best one was not
    // disturbed.
    constexpr int64_t kCount = 400000;
    const int64_t items = pool.num_threads();
    std::vector<double> rates(static_cast<size_t>(items));
    pool.parallel_for(items, [&](int64_t begin, int64_t finish, int) {
      for (int64_t i = begin; i < finish; ++i) {
        const double start = thread_seconds();
        const double flops = chains(kCount);
        rates[static_cast<size_t>(i)] = flops / (thread_seconds() - start);
      }
    });
    best = std::max(best, std::accumulate(rates.begin(), rates.end(), 0.0));
  } while (seconds_now() < end);
  return best;
}

double measured_peak_flops(DType dtype, ThreadPool& pool, const std::filesystem::path& cache_folder,
                           Measure when) {
  return cached(cache_folder, name_of(dtype), pool, when,
                [&] { return measure_peak_flops(dtype, pool); });
}

std::optional<double> kept_peak_flops(DType dtype, const ThreadPool& pool,
                                      const std::filesystem::path& cache_folder) {
  return kept(cache_folder, name_of(dtype), pool).value;
}

double measure_bandwidth(ThreadPool& pool, double seconds) {
  constexpr int64_t kBlock = 1 << 20, kBlocks = 32;  // 128 MiB each array
  const auto add = add_for_isa();
  const auto to = aligned_bytes(kBlock * kBlocks * 4), from = aligned_bytes(kBlock * kBlocks * 4);
  const auto pass = [&] {
    pool.parallel_for(kBlocks, [&](int64_t begin, int64_t end, int) {
      add(static_cast<float*>(to.get()) + begin * kBlock,
          static_cast<const float*>(from.get()) + begin * kBlock, (end - begin) * kBlock);
    });
  };
  double best = 0;
  const double end = seconds_now() + seconds;
  do {
    const double start = seconds_now();
    pass();
    best = std::max(best, 12.0 * kBlock * kBlocks / (seconds_now() - start));
  } while (seconds_now() < end);
  return best;
}

double measured_bandwidth(ThreadPool& pool, const std::filesystem::path& cache_folder,
                          Measure when) {
  return cached(cache_folder, "bytes", pool, when, [&] { return measure_bandwidth(pool); });
}

}  // namespace rhea::ops
