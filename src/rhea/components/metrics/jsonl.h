// metrics/rank_r.jsonl: one JSON object per logged step.
#pragma once
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>

#include "rhea/components/metrics/metric.h"

namespace rhea::metrics {

// Appends to the file; a line that a killed run left torn is cut off first. Errors of the disk
// throw Error naming the file.
class JsonlWriter {
 public:
  explicit JsonlWriter(const std::filesystem::path& path);
  ~JsonlWriter();
  JsonlWriter(const JsonlWriter&) = delete;
  JsonlWriter& operator=(const JsonlWriter&) = delete;

  // Writes {"step": n, "time": t, ...} and flushes. NaN and infinities, which JSON does not have,
  // become null.
  void write(int64_t step, double unix_time, std::span<const Metric> metrics);

 private:
  std::filesystem::path path_;
  std::FILE* file_ = nullptr;
};

}  // namespace rhea::metrics
