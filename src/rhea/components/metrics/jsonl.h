// metrics/rank_r.jsonl: one JSON object per logged step.
#pragma once
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>

namespace rhea::metrics {

// A key under torchtitan's name ("loss_metrics/global_avg_loss") and its value.
struct Metric {
  std::string key;
  double value = 0;
};

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
