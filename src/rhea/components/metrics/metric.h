// The numbers of a logged step.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rhea::metrics {

// A key under torchtitan's name ("loss_metrics/global_avg_loss") and its value.
struct Metric {
  std::string key;
  double value = 0;
};

// The metrics of a step, or of a validation: then their keys begin with "validation_metrics/".
struct Record {
  int64_t step = 0;
  double unix_time = 0;
  std::span<const Metric> metrics;

  // Throws Error where there is none of that key.
  double at(std::string_view key) const;
  bool is_validation() const;
};

}  // namespace rhea::metrics
