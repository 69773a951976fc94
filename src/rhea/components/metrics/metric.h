// The numbers of a logged step.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rhea::metrics {

// A key under torchtitan's name ("loss_metrics/global_avg_loss") and its value.
struct Metric {
  std::string key;   // "loss_metrics/global_avg_loss"
  double value = 0;  // in the unit that its key says
};

// The metrics of a step, or of a validation: then their keys begin with "validation_metrics/".
struct Record {
  int64_t step = 0;                 // the first is 1
  double unix_time = 0;             // seconds
  std::span<const Metric> metrics;  // valid while the record is written

  // Throws Error where there is none of that key.
  double at(std::string_view key) const;
  // Whether they are those of a validation.
  bool is_validation() const;
};

}  // namespace rhea::metrics
