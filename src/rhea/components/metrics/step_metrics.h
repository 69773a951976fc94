// What is measured about a step; the sinks write it (sinks.h).
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "rhea/components/metrics/sinks.h"

namespace rhea::metrics {

struct StepMetricsOptions {
  Slot<MetricsConfig> config;  // which sinks, and options of theirs
  std::filesystem::path dump_folder;
  bool colors = false;
  bool progress = false;  // a line with the remaining time that is rewritten in place
  double flops_per_token = 0;
  std::optional<double> peak_flops;  // empty: mfu N/A, until set_peak()
  int64_t planned_bytes = 0;         // of this process
  int64_t machine_bytes = 0;
  int64_t total_steps = 0;
};

// Seconds spent since the last logged line, by what the step does.
struct StepTimes {
  double data = 0, forward_backward = 0, optimizer = 0, checkpoint = 0;
};

class StepMetrics {
 public:
  explicit StepMetrics(StepMetricsOptions options);

  // Counts a finished step of `tokens` tokens (padding included).
  void count_step(int64_t tokens);
  StepTimes& times() { return times_; }
  // Hands the metrics of `step` to the sinks and starts a new window. `rates`: (key, learning rate)
  // per param group, and other values that belong to the step.
  void log_step(int64_t step, double loss, double max_loss, double grad_norm, int64_t tokens_seen,
                const std::vector<Metric>& rates);
  // `seconds` and `tokens` of this validation; the training window is not touched, but for the time
  // that passed.
  void log_validation(int64_t step, double loss, int64_t tokens, double seconds);
  void set_peak(double flops) { options_.peak_flops = flops; }
  // Takes time that is no training (validation, measuring the peak) out of the window.
  void exclude(double seconds) { excluded_ += seconds; }
  void show_progress(int64_t step);

 private:
  void write(int64_t step, const std::vector<Metric>& metrics);

  StepMetricsOptions options_;
  std::vector<OpenSink> sinks_;
  std::chrono::steady_clock::time_point window_start_;
  double excluded_ = 0;
  int64_t window_tokens_ = 0, window_steps_ = 0;
  StepTimes times_;
  double seconds_per_step_ = 0;
};

// Of this process so far.
int64_t peak_resident_bytes();

}  // namespace rhea::metrics
