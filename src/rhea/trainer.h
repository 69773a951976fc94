// The training loop of one rank.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rhea/base/error.h"
#include "rhea/base/thread_pool.h"
#include "rhea/components/checkpoint/checkpointer.h"
#include "rhea/components/data/data_loader.h"
#include "rhea/components/lr_scheduler/lr_scheduler.h"
#include "rhea/components/metrics/step_metrics.h"
#include "rhea/components/metrics/structured_log.h"
#include "rhea/components/profiler/memory_snapshot.h"
#include "rhea/components/profiler/profiler.h"
#include "rhea/components/signals/stop_signals.h"
#include "rhea/components/train_step/train_step.h"
#include "rhea/config/trainer_config.h"
#include "rhea/models/model_size.h"

namespace rhea {

// Builds everything that a validated config describes, then trains. Prints the start-up lines in
// the order that log readers rely on. Throws Error or ExitError; the caller turns them into exit
// codes.
class Trainer {
 public:
  using Clock = std::chrono::steady_clock;
  // `start` is when the process began: training.max_wall_time counts from there.
  explicit Trainer(TrainerConfig config, Clock::time_point start = Clock::now());
  ~Trainer();

  ExitCode train();

  // For tests.
  const train_step::TrainStep& step() const { return *step_; }

 private:
  struct StepResult {
    double loss = 0, max_loss = 0, grad_norm = 0;
    bool updated = false;
    std::vector<metrics::Metric> loads;  // of experts
  };

  void build_model();
  void build_step(train_step::StepGraphs graphs, const train_step::StepOptions& options);
  void build_data();
  void build_checkpointer();
  void build_metrics();
  void build_profiler();
  void measure_peak();
  void load_checkpoint();
  void take_seed(const std::optional<uint64_t>& stored);

  // Fetches the step's microbatches; false when the data have run out.
  bool fetch();
  StepResult train_one_step();
  void log_first_loss(double loss) const;
  void check_ids(const data::Batch& batch) const;
  void stop_if_non_finite(const StepResult& result);
  void validate();
  void save(checkpoint::SaveReason reason);
  ExitCode stop_on_request(signals::StopRequest::Cause cause);

  TrainerConfig config_;
  uint64_t seed_ = 0;
  int64_t accumulation_ = 1;
  int64_t global_batch_size_ = 0;
  std::optional<double> peak_flops_;  // none: no MFU, or not until it is measured
  bool peak_is_due_ = false;          // measure_peak() has something to do
  std::vector<checkpoint::Adapter> adapters_;
  std::string hf_config_json_;  // of an export, and of the checkpoints that rhea generate reads
  signals::StopSignals stop_signals_;
  signals::StopRequest stop_request_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<metrics::StructuredLog> events_;
  std::unique_ptr<train_step::TrainStep> step_;
  models::ModelSize size_;
  lr_scheduler::Schedule schedule_;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  std::unique_ptr<data::DataLoader> loader_;
  std::unique_ptr<checkpoint::Checkpointer> checkpointer_;
  std::unique_ptr<metrics::StepMetrics> metrics_;
  std::unique_ptr<profiler::Profiler> profiler_;        // null: off
  std::unique_ptr<profiler::MemorySnapshot> snapshot_;  // null: off
  std::vector<data::Batch> batches_;                    // of the current step

  int64_t current_step_ = 0;    // optimizer steps done, skipped ones included
  int64_t schedule_step_ = 0;   // the same as the schedule counts them
  int64_t optimizer_step_ = 0;  // updates the optimizer's state has seen
  int64_t tokens_seen_ = 0;
  int64_t skipped_steps_ = 0;
};

}  // namespace rhea
