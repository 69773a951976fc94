// The loop: fetch, forward and backward, clip, update, log, save, validate.
#include "rhea/trainer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "rhea/base/log.h"
#include "rhea/base/text.h"
#include "rhea/components/data/numbered_rows.h"
#include "rhea/models/registry.h"
#include "rhea/trainer_options.h"
#include "rhea/trainer_state.h"

namespace rhea {
namespace {

constexpr const char* kLog = "train";

// Adds the seconds of a block of code to a counter.
class Stopwatch {
 public:
  explicit Stopwatch(double& sum) : sum_(sum), start_(Trainer::Clock::now()) {}
  ~Stopwatch() { sum_ += std::chrono::duration<double>(Trainer::Clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& sum_;
  Trainer::Clock::time_point start_;
};

train_step::Batch view(const data::Batch& batch) {
  return {batch.input.data(), batch.labels.data(), batch.positions.data(), batch.is_token.data()};
}

// Of each layer with balanced experts: the tokens of its fullest expert over the mean. Every token
// gets its experts here.
std::vector<metrics::Metric> load_metrics(const train_step::TrainStep& step) {
  std::vector<metrics::Metric> metrics;
  for (size_t i = 0; i < step.loads().size(); ++i) {
    const auto& load = step.loads()[i];
    const std::span counts(static_cast<const int32_t*>(load.data),
                           static_cast<size_t>(ir::num_elements(load.type.shape)));
    const auto sum = std::accumulate(counts.begin(), counts.end(), int64_t{0});
    const std::string& bias = step.graphs().balances[i].bias;
    const double most = std::ranges::max(counts);
    metrics.push_back(
        {fmt::format("moe/max_over_mean_load/{}", bias.substr(0, bias.rfind('.'))),
         sum == 0 ? 0 : most * static_cast<double>(counts.size()) / static_cast<double>(sum)});
  }
  if (!metrics.empty()) metrics.push_back({"moe/tokens_dropped", 0});
  return metrics;
}

}  // namespace

Trainer::~Trainer() = default;

ExitCode Trainer::train() {
  if (config_.checkpoint->create_seed_checkpoint) {
    checkpointer_->save_seed(
        model_tensors(*step_).tensors(),
        state_map({.seed = seed_}, loader_->state(), config_, hf_config_json_, adapters_));
    return ExitCode::ok;
  }
  if (current_step_ < config_.training.steps)
    log::info(kLog, "Training starts at step {}", current_step_ + 1);
  else
    log::warning(kLog,
                 "Nothing to train: the checkpoint is at step {} and training.steps is {}; raise "
                 "training.steps to go on",
                 current_step_, config_.training.steps);
  const int64_t first = current_step_ + 1;
  // A run whose steps are done may still lack what the options now ask of its last save.
  if (current_step_ == config_.training.steps && checkpointer_->lacks_last_weights(current_step_))
    save(checkpoint::SaveReason::last);
  while (current_step_ < config_.training.steps) {
    if (const auto cause = stop_request_.poll(); cause != signals::StopRequest::Cause::none)
      return stop_on_request(cause);
    events_->set_step(current_step_ + 1);
    if (profiler_) profiler_->begin_step(current_step_ + 1);
    const metrics::StructuredLog::Span span(*events_, "step");
    if (!fetch()) {
      log::warning(kLog, "Ran out of data; last step was canceled.");
      save(checkpoint::SaveReason::data_end);
      break;
    }
    checkpointer_->poll();
    const StepResult result = train_one_step();
    ++current_step_;
    ++schedule_step_;
    const bool logs = current_step_ == first || current_step_ % config_.metrics->log_freq == 0 ||
                      current_step_ == config_.training.steps;
    if (logs) {
      measure_peak();
      const metrics::StructuredLog::Span collecting(*events_, "collect_dist_metrics");
      std::vector<metrics::Metric> rates = result.loads;
      const auto& groups = step_->graphs().groups.groups;
      for (size_t i = 0; i < groups.size(); ++i) {
        const std::string suffix = groups.size() == 1 ? "" : fmt::format("/{}", i);
        rates.push_back({fmt::format("lr/{}{}", groups[i].optimizer_name(), suffix),
                         groups[i].lr() * schedule_.factor(schedule_step_ - 1)});
      }
      metrics_->log_step(current_step_, result.loss, result.max_loss, result.grad_norm,
                         tokens_seen_, rates);
    }
    if (current_step_ == first && result.updated) log_first_loss(result.loss);
    metrics_->show_progress(current_step_);
    save(current_step_ == config_.training.steps ? checkpoint::SaveReason::last
                                                 : checkpoint::SaveReason::interval);
    if (config_.validator->enable &&
        (current_step_ == 1 || current_step_ % config_.validator->freq == 0))
      validate();
    if (profiler_) profiler_->end_step();
    if (snapshot_) snapshot_->end_step(current_step_);
  }
  checkpointer_->wait();
  if (skipped_steps_ > 0)
    log::warning(kLog, "{} step(s) were skipped without an update", skipped_steps_);
  const auto stats = loader_->stats();
  log::info(kLog,
            "Data: {} documents, {} empty, {} bad rows skipped, {} too long; waited {:.3f} s for "
            "data in all",
            with_commas(stats.num_documents), stats.num_empty, stats.num_bad_rows,
            stats.num_too_long, loader_->total_wait_seconds());
  log::info(kLog, "Training completed");
  log::info(kLog, "Process group destroyed");
  return ExitCode::ok;
}

// Beside what it is when every token is equally likely: tells trained weights from random ones.
void Trainer::log_first_loss(double loss) const {
  const auto vocab_size = models::decoder(config_.model_spec).vocab_size();
  log::info(kLog, "First loss: {:.5f} (all {} tokens equally likely: {:.5f})", loss,
            with_commas(vocab_size), std::log(static_cast<double>(vocab_size)));
}

bool Trainer::fetch() {
  const metrics::StructuredLog::Span span(*events_, "fetching_batch");
  const Stopwatch watch(metrics_->times().data);
  batches_.resize(static_cast<size_t>(accumulation_));
  for (data::Batch& batch : batches_) {
    if (!loader_->next(batch)) return false;
    check_ids(batch);
  }
  return true;
}

void Trainer::check_ids(const data::Batch& batch) const {
  const auto vocab_size = static_cast<int32_t>(models::decoder(config_.model_spec).vocab_size());
  const auto outside = [&](int32_t id) { return id < 0 || id >= vocab_size; };
  for (size_t i = 0; i < batch.input.size(); ++i) {
    const bool bad_label = outside(batch.labels[i]) && batch.labels[i] != data::kIgnoreLabel;
    if (!bad_label && !outside(batch.input[i])) continue;
    throw Error("step {}, rank 0, row {}, position {}: {} {} is outside the vocabulary [0, {})",
                current_step_ + 1, static_cast<int64_t>(i) / batch.seq_len,
                static_cast<int64_t>(i) % batch.seq_len, bad_label ? "label" : "token",
                bad_label ? batch.labels[i] : batch.input[i], vocab_size);
  }
}

Trainer::StepResult Trainer::train_one_step() {
  StepResult result;
  int64_t valid = 0;
  {
    const metrics::StructuredLog::Span span(*events_, "post_dataloading_process");
    for (const data::Batch& batch : batches_) valid += batch.num_valid_labels;
    events_->scalar("local_valid_tokens", static_cast<double>(valid));
    events_->scalar("global_valid_tokens", static_cast<double>(valid));  // one rank: the same
  }
  const int64_t tokens =
      accumulation_ * config_.training.local_batch_size * config_.training.seq_len;
  metrics_->count_step(tokens);
  tokens_seen_ += tokens;
  if (valid == 0) {
    log::warning(kLog, "step {}: no label of this step counts; the update is skipped",
                 current_step_ + 1);
    ++skipped_steps_;
    return result;
  }
  {
    const metrics::StructuredLog::Span span(*events_, "fwd_bwd");
    const Stopwatch watch(metrics_->times().forward_backward);
    for (const data::Batch& batch : batches_)
      result.loss += step_->forward_backward(view(batch), 1 / static_cast<double>(valid));
  }
  result.max_loss = result.loss;  // one rank: its own mean
  result.loads = load_metrics(*step_);
  const metrics::StructuredLog::Span span(*events_, "optim");
  const Stopwatch watch(metrics_->times().optimizer);
  result.grad_norm = step_->gradient_norm();
  if (!std::isfinite(result.loss) || !std::isfinite(result.grad_norm)) {
    stop_if_non_finite(result);
    step_->discard_gradients();
    ++skipped_steps_;
    return result;
  }
  const double clip = std::min(1.0, config_.training.max_norm / (result.grad_norm + 1e-6));
  std::vector<double> rates;
  for (const auto& group : step_->graphs().groups.groups)
    rates.push_back(group.lr() * schedule_.factor(schedule_step_));
  step_->update(++optimizer_step_, rates, clip);
  result.updated = true;
  return result;
}

void Trainer::stop_if_non_finite(const StepResult& result) {
  const auto latest = checkpointer_->latest();
  const std::string message = fmt::format(
      "Loss or gradient norm is not finite on at least one rank at step {}. {}\n  rank 0: loss {}, "
      "gradient norm {}\n  "
      "last complete checkpoint: {}",
      current_step_ + 1,
      config_.training.on_nonfinite == "skip" ? "This update is skipped."
                                              : "Stopping training before the optimizer update.",
      result.loss, result.grad_norm, latest ? latest->string() : "none");
  if (config_.training.on_nonfinite != "skip") throw ExitError(ExitCode::non_finite, message);
  log::warning(kLog, "{}", message);
}

void Trainer::validate() {
  const metrics::StructuredLog::Span span(*events_, "eval");
  const auto start = Clock::now();
  auto options = loader_options(config_, *config_.validator->dataloader);
  options.infinite = config_.validator->steps != -1;
  options.pad_last_batch = true;
  options.vocab_size = models::decoder(config_.model_spec).vocab_size();
  data::DataLoader loader(options, tokenizer_);
  double sum = 0;
  int64_t valid = 0, tokens = 0;
  data::Batch batch;
  for (int64_t i = 0;
       (config_.validator->steps == -1 || i < config_.validator->steps) && loader.next(batch);
       ++i) {
    check_ids(batch);
    tokens += batch.rows * batch.seq_len;
    if (batch.num_valid_labels == 0) continue;
    const auto count = static_cast<double>(batch.num_valid_labels);
    sum += step_->evaluate(view(batch), 1 / count) * count;
    valid += batch.num_valid_labels;
  }
  if (valid == 0) throw Error("validation found no label in {}", loader.description());
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  metrics_->log_validation(current_step_, sum / static_cast<double>(valid), tokens, seconds);
}

void Trainer::save(checkpoint::SaveReason reason) {
  if (!checkpointer_->due(current_step_, reason)) return;
  const metrics::StructuredLog::Span span(*events_, "checkpoint_save");
  const Stopwatch watch(metrics_->times().checkpoint);
  const TrainState state{current_step_, schedule_step_, optimizer_step_, tokens_seen_, seed_};
  checkpointer_->save(current_step_, checkpoint_tensors(*step_).tensors(),
                      state_map(state, loader_->state(), config_, hf_config_json_, adapters_),
                      reason);
}

ExitCode Trainer::stop_on_request(signals::StopRequest::Cause cause) {
  const std::string what =
      cause == signals::StopRequest::Cause::wall_time
          ? fmt::format("training.max_wall_time ({}) is over", config_.training.max_wall_time)
          : fmt::format("{} received", signals::signal_name(signals::received()));
  if (!config_.checkpoint->enable || config_.checkpoint->load_only ||
      !config_.checkpoint->save_on_signal) {
    log::warning(kLog,
                 "{} after step {}; nothing was saved (checkpoint.enable is off, or saving is not "
                 "asked for)",
                 what, current_step_);
    return ExitCode::terminated;
  }
  log::info(kLog, "{}; saving step {} and stopping", what, current_step_);
  save(checkpoint::SaveReason::signal);
  checkpointer_->wait();
  return ExitCode::ok;
}

}  // namespace rhea
