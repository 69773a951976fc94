#include "rhea/components/metrics/step_metrics.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>

#include "rhea/base/rethrow.h"
#include "rhea/base/status_line.h"

namespace rhea::metrics {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

StepMetrics::StepMetrics(StepMetricsOptions options)
    : options_(std::move(options)),
      sinks_(open_sinks({*options_.config, options_.dump_folder, options_.colors})),
      window_start_(std::chrono::steady_clock::now()) {}

void StepMetrics::count_step(int64_t tokens) {
  window_tokens_ += tokens;
  ++window_steps_;
}

void StepMetrics::log_step(int64_t step, double loss, double max_loss, double grad_norm,
                           int64_t tokens_seen, const std::vector<Metric>& rates) {
  const auto now = std::chrono::steady_clock::now();
  const double elapsed =
      std::max(std::chrono::duration<double>(now - window_start_).count() - excluded_, 1e-9);
  const double tps = static_cast<double>(window_tokens_) / elapsed;
  const double tflops = options_.flops_per_token * tps / 1e12;
  const double gib = static_cast<double>(options_.planned_bytes) / kGiB;
  const double percent = 100 * static_cast<double>(options_.planned_bytes) /
                         static_cast<double>(options_.machine_bytes);
  const double mfu =
      options_.peak_flops ? 100 * options_.flops_per_token * tps / *options_.peak_flops : NAN;
  seconds_per_step_ = elapsed / static_cast<double>(std::max<int64_t>(window_steps_, 1));

  const double resident = static_cast<double>(peak_resident_bytes());
  std::vector<Metric> metrics = {
      {"loss_metrics/global_avg_loss", loss},
      {"loss_metrics/global_max_loss", max_loss},
      {"grad_norm", grad_norm},
      {"throughput(tps)", tps},
      {"tflops", tflops},
      {"mfu(%)", mfu},
      {"time_metrics/end_to_end(s)", seconds_per_step_},
      {"time_metrics/data_loading(s)",
       times_.data / static_cast<double>(std::max<int64_t>(window_steps_, 1))},
      {"time_metrics/data_loading(%)", 100 * times_.data / elapsed},
      {"time_metrics/forward_backward(s)",
       times_.forward_backward / static_cast<double>(std::max<int64_t>(window_steps_, 1))},
      {"time_metrics/optimizer(s)",
       times_.optimizer / static_cast<double>(std::max<int64_t>(window_steps_, 1))},
      {"time_metrics/checkpoint(s)", times_.checkpoint},
      {"memory/max_active(GiB)", gib},
      {"memory/max_active(%)", percent},
      {"memory/max_reserved(GiB)", resident / kGiB},
      {"memory/max_reserved(%)", 100 * resident / static_cast<double>(options_.machine_bytes)},
      {"memory/num_alloc_retries", 0},
      {"memory/num_ooms", 0},
      {"n_tokens_seen", static_cast<double>(tokens_seen)},
  };
  metrics.insert(metrics.end(), rates.begin(), rates.end());
  write(step, metrics);
  window_start_ = now;
  excluded_ = 0;
  window_tokens_ = window_steps_ = 0;
  times_ = {};
}

void StepMetrics::log_validation(int64_t step, double loss, int64_t tokens, double seconds) {
  const double tps = static_cast<double>(tokens) / std::max(seconds, 1e-9);
  const double gib = static_cast<double>(options_.planned_bytes) / kGiB;
  const double percent = 100 * static_cast<double>(options_.planned_bytes) /
                         static_cast<double>(options_.machine_bytes);
  const double resident = static_cast<double>(peak_resident_bytes());
  write(step, {{"validation_metrics/loss", loss},
               {"validation_metrics/throughput(tps)", tps},
               {"validation_metrics/memory/max_active(GiB)", gib},
               {"validation_metrics/memory/max_active(%)", percent},
               {"validation_metrics/memory/max_reserved(GiB)", resident / kGiB},
               {"validation_metrics/memory/max_reserved(%)",
                100 * resident / static_cast<double>(options_.machine_bytes)}});
  exclude(seconds);
}

void StepMetrics::show_progress(int64_t step) {
  if (!options_.progress || seconds_per_step_ == 0) return;
  const auto remaining =
      static_cast<int64_t>(static_cast<double>(options_.total_steps - step) * seconds_per_step_);
  log::show_status(fmt::format("step {}/{}, {}:{:02}:{:02} left", step, options_.total_steps,
                               remaining / 3600, remaining / 60 % 60, remaining % 60));
}

void StepMetrics::write(int64_t step, const std::vector<Metric>& metrics) {
  const double now = unix_time();
  for (const auto& [name, sink] : sinks_) {
    try {
      sink->write({step, now, metrics});
    } catch (...) {
      rethrow_with(fmt::format("metric sink {} at step {}", name, step));
    }
  }
}

}  // namespace rhea::metrics
