// Start-up: what is built, in the order of the log lines.
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <set>
#include <utility>

#include "rhea/base/cpu_features.h"
#include "rhea/base/log.h"
#include "rhea/base/machine_memory.h"
#include "rhea/base/mapped_file.h"
#include "rhea/base/text.h"
#include "rhea/base/version.h"
#include "rhea/components/train_step/optimizer_arguments.h"
#include "rhea/config/duration.h"
#include "rhea/config/json.h"
#include "rhea/config/validate.h"
#include "rhea/model_files.h"
#include "rhea/models/converters/convert.h"
#include "rhea/models/hf/config_json.h"
#include "rhea/models/registry.h"
#include "rhea/ops/peak.h"
#include "rhea/parameter_tensors.h"
#include "rhea/plan.h"
#include "rhea/run_overrides.h"
#include "rhea/trainer.h"
#include "rhea/trainer_options.h"
#include "rhea/trainer_state.h"

namespace rhea {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr const char* kLog = "train";

std::optional<std::chrono::seconds> wall_time(const std::string& text) {
  if (text.empty()) return {};
  return std::chrono::seconds(config::parse_duration(text));
}

uint64_t draw_seed() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 16) ^ device();
}

void log_recompute(const ActivationCheckpointConfig& config) {
  if (config.mode == "none") return;
  if (config.mode == "memory_budget")
    log::info(kLog, "Selected {} budget option", config.memory_budget);
  const char* names = config.mode == "full"        ? "FullAC"
                      : config.mode == "selective" ? "SelectiveAC"
                                                   : "MemoryBudgetAC";
  log::info(kLog, "Applied {} activation checkpointing to the model", names);
}

// Of the products of the run.
DType peak_dtype(const TrainerConfig& config) {
  const bool bf16 =
      config.training.dtype == "bfloat16" || config.training.mixed_precision_param == "bfloat16";
  return bf16 ? DType::bf16 : DType::f32;
}

void log_peak(double flops) { log::info(kLog, "Peak FLOPS used for computing MFU: {:.3e}", flops); }

// What each memory budget costs, as a table for a spreadsheet or a plot.
void write_budget_curve(const std::filesystem::path& folder,
                        const std::vector<passes::BudgetPoint>& curve) {
  if (curve.empty()) return;
  std::string text = "memory_budget,recomputed_flops,peak_bytes,arena_bytes\n";
  for (const auto& point : curve)
    text += fmt::format("{:.2f},{:.0f},{},{}\n", point.budget, point.recomputed_flops,
                        point.bytes.live, point.bytes.arena);
  const auto path = folder / "memory_budget_pareto.csv";
  std::filesystem::create_directories(folder);
  write_file_atomic(path, text);
  log::info(kLog, "Memory budget table written to {}", path.string());
}

// Refused before anything is allocated: the system would end the process without a word. The
// batches of a step are all read before its first microbatch runs.
void check_memory(const TrainerConfig& config, const train_step::StepGraphs& graphs,
                  int64_t accumulation, int num_threads) {
  auto options = compile_options(config);
  options.dump_graphs.clear();  // they are dumped when they are compiled
  const auto memory = train_step::plan_step(graphs, num_threads, options).memory;
  const double batches = 3.0 * sizeof(int32_t) * static_cast<double>(accumulation) *
                         static_cast<double>(config.training.local_batch_size) *
                         static_cast<double>(config.training.seq_len);
  const MachineMemory left = machine_memory();
  const int64_t available = left.available;
  const bool copies = config.checkpoint->enable && !config.checkpoint->load_only &&
                      lower_case(config.checkpoint->async_mode) != "disabled";
  const double copy = copies ? static_cast<double>(memory.parameters + memory.optimizer) : 0;
  const double needed = static_cast<double>(memory.total()) + batches + copy;
  if (needed <= static_cast<double>(available)) return;
  std::string advice = what_lowers_memory(config, memory, available);
  if (copies)
    advice += fmt::format(
        "  --checkpoint.async_mode disabled (the copy that is written in the background: -{:.2f} "
        "GiB)\n",
        copy / kGiB);
  if (batches > needed / 4)
    advice += fmt::format(
        "  a smaller --training.global_batch_size (the batches of a step: {:.2f} GiB)\n",
        batches / kGiB);
  throw ExitError(
      ExitCode::out_of_memory,
      fmt::format(
          "out of memory: the run needs {:.2f} GiB, and {:.2f} GiB are left ({}). What lowers "
          "it:\n{}`rhea plan` with the same options shows where "
          "the memory goes",
          needed / kGiB, static_cast<double>(available) / kGiB, left.bound, advice));
}

// A replacement is part of what was trained.
void warn_of_overrides(std::vector<std::string> saved, const std::vector<std::string>& active,
                       const std::filesystem::path& path) {
  std::erase_if(saved, [&](const std::string& name) {
    return std::find(active.begin(), active.end(), name) != active.end();
  });
  if (!saved.empty())
    log::warning(kLog,
                 "{} was saved with override(s) {}, which this run does not have: the model goes "
                 "on with its stock parts there; name them in --override.imports to keep them",
                 path.string(), fmt::join(saved, ", "));
}

// So is the format of products, or how much an adapter counts.
void warn_of_converters(const std::vector<std::string>& saved,
                        const std::vector<std::string>& active, const std::filesystem::path& path) {
  if (saved == active) return;
  const auto list = [](const std::vector<std::string>& converters) {
    return converters.empty() ? "no converters" : fmt::format("{}", fmt::join(converters, ", "));
  };
  log::warning(kLog,
               "{} was saved with {}, and this run has {}: the model computes something else from "
               "here on; give model_spec.converters the same entries to go on as before",
               path.string(), list(saved), list(active));
}

}  // namespace

Trainer::Trainer(TrainerConfig config, Clock::time_point start)
    : config_(std::move(config)),
      stop_request_(wall_time(config_.training.max_wall_time), start),
      pool_(std::make_unique<ThreadPool>(static_cast<int>(config_.executor.num_threads))) {
  apply_overrides(config_);
  log::info(kLog, "rhea version: {}", version_line());
  log::info(
      kLog,
      "Building device mesh with parallelism: pp=1, dp_replicate=1, dp_shard=1, cp=1, tp=1, ep=1");
  log::info(kLog, "Successfully created meshes with active dimensions: []");
  if (config_.debug.print_config)
    log::info(kLog, "Running with configs: {}", config::to_json(config_, -1));
  if (config_.debug.save_config_file) {
    const auto path = std::filesystem::path(config_.dump_folder) / *config_.debug.save_config_file;
    config::save_json(config_, path.string());
    log::info(kLog, "Saved job configs to {}", path.string());
  }
  if (config_.debug.deterministic)
    log::info(kLog, "Deterministic algorithm enabled (expect perf degradation).");
  if (config_.debug.detect_anomaly)
    log::warning(kLog,
                 "Anomaly detection enabled. Every intermediate is checked; training is slow.");
  seed_ = config_.debug.seed ? static_cast<uint64_t>(*config_.debug.seed) : draw_seed();
  events_ = std::make_unique<metrics::StructuredLog>(
      config_.debug.enable_structured_logging
          ? std::filesystem::path(config_.dump_folder) / "structured_logs/rank_0.jsonl"
          : std::filesystem::path(),
      0);
  {
    const metrics::StructuredLog::Span span(*events_, "model_parallelism_init");
    accumulation_ = config::accumulation_steps(config_, 1);
    global_batch_size_ = config::resolved_global_batch_size(config_, 1);
  }

  build_model();
  build_data();
  build_checkpointer();
  build_metrics();
  build_profiler();
  log::info(kLog,
            "Trainer is initialized with local batch size {}, global batch size {}, gradient "
            "accumulation steps {}, "
            "sequence length {}, total steps {} (warmup {})",
            config_.training.local_batch_size, global_batch_size_, accumulation_,
            config_.training.seq_len, config_.training.steps, schedule_.warmup);
  load_checkpoint();
}

void Trainer::build_model() {
  const metrics::StructuredLog::Span span(*events_, "model.build");
  const auto& model = models::decoder(config_.model_spec);
  const std::string name = fmt::format("{} {}", config_.model_spec.name, config_.model_spec.flavor);
  for (const auto& note : config_.model_spec.conversion_notes)
    note.is_warning ? log::warning(kLog, "{}", note.text) : log::info(kLog, "{}", note.text);
  log::info(kLog, "Building {}", name);
  if (config_.model_spec.flavor == models::kFromConfig) {
    const auto run = models::read_run_config(config_);
    log::info(
        kLog, "Model structure from {}{}{}", run.file.string(),
        run.replaced.empty() ? "" : "; replaced by hf_overrides: ", fmt::join(run.replaced, ", "));
    models::hf::log_notes(models::hf::parse_config(run.json, run.file.string()), run.file.string());
  }
  const int64_t memory = machine_memory().total;
  log::info(kLog, "CPU capacity: {} with {:.2f}GiB memory", cpu_brand(),
            static_cast<double>(memory) / kGiB);

  // Its faults are found before the memory of the model is taken.
  tokenizer_ = load_tokenizer_for(config_);
  if (tokenizer_) tokenizer::check_vocabulary(*tokenizer_, model.vocab_size());

  const auto options = step_options(config_);
  auto graphs = train_step::build_step_graphs(model, options);
  size_ = models::model_size(model, graphs.all_parameters(), config_.training.seq_len);
  if (size_.num_sparse > 0)
    log::info(kLog, "Total parameter count: dense {}, sparse {}, vision 0, active {}",
              with_commas(size_.num_parameters - size_.num_sparse), with_commas(size_.num_sparse),
              with_commas(size_.num_active));
  log::info(kLog, "Model {} size: {} total parameters", name, with_commas(size_.num_parameters));
  if (!graphs.frozen.empty())
    log::info(kLog, "Trainable parameters: {} of {} ({:.3f}%)", with_commas(size_.num_trainable),
              with_commas(size_.num_parameters), size_.trainable_percent());
  log_recompute(config_.activation_checkpoint);
  write_budget_curve(config_.dump_folder, graphs.budget_curve);
  build_step(std::move(graphs), options);
  const auto compiled = step_->executables();
  std::vector<std::string> names;
  for (const auto& [program, executable] : compiled) names.push_back(program);
  log::info(kLog, "{} {} programs: {}",
            compile_options(config_).interpret ? "Interpreting" : "Compiled", names.size(),
            fmt::join(names, ", "));
  if (models::is_quantized(config_.model_spec)) {
    log::info(kLog, "MFU is not computed: products run in several formats");
  } else {
    peak_flops_ = config_.metrics->peak_flops;
    if (!peak_flops_)
      peak_flops_ = ops::kept_peak_flops(peak_dtype(config_), *pool_, cache_folder(config_));
    if (peak_flops_)
      log_peak(*peak_flops_);
    else
      peak_is_due_ = true;
  }
  const auto& planned = step_->memory();
  const auto gib = [](int64_t bytes) { return static_cast<double>(bytes) / kGiB; };
  log::info(kLog, "CPU memory usage for model: {:.2f}GiB({:.2f}%)", gib(planned.parameters),
            100 * gib(planned.parameters) / gib(memory));
  log::info(kLog,
            "Planned peak memory: {:.2f} GiB (parameters {:.2f}, gradients {:.2f}, optimizer "
            "{:.2f}, activations {:.2f}, "
            "prepared weights {:.2f}, scratch {:.2f}, shared -{:.2f})",
            gib(planned.total()), gib(planned.parameters), gib(planned.gradients),
            gib(planned.optimizer), gib(planned.activations), gib(planned.prepared),
            gib(planned.scratch), gib(planned.shared()));
  const auto& groups = step_->graphs().groups;
  for (size_t i = 0; i < groups.groups.size(); ++i) {
    const auto& group = groups.groups[i];
    const auto tensors = std::count(groups.group_of.begin(), groups.group_of.end(), i);
    log::info(kLog, "Optimizer {} (model_part=0): {} params [{}] {}, {} of {} elements decayed",
              group.optimizer_name(), tensors, group.pattern, train_step::describe(group.kwargs),
              with_commas(group.decays() ? group.num_parameters : 0),
              with_commas(group.num_parameters));
  }
  std::vector<std::string> warnings;
  schedule_ = lr_scheduler::make_schedule(*config_.lr_scheduler, config_.training.steps, warnings);
  for (const auto& warning : warnings) log::warning(kLog, "{}", warning);
}

void Trainer::build_step(train_step::StepGraphs graphs, const train_step::StepOptions& options) {
  const auto compile = compile_options(config_);
  if (config_.profiler->enable_memory_snapshot)
    snapshot_ = std::make_unique<profiler::MemorySnapshot>(
        *config_.profiler, config_.dump_folder, graphs,
        train_step::plan_step(graphs, pool_->num_threads(), compile));
  try {
    check_memory(config_, graphs, accumulation_, pool_->num_threads());
    step_ =
        std::make_unique<train_step::TrainStep>(std::move(graphs), options.trace, compile, *pool_);
  } catch (const ExitError& error) {
    if (snapshot_ && error.code() == ExitCode::out_of_memory) snapshot_->write_at_exit(0);
    throw;
  }
}

void Trainer::build_data() {
  const metrics::StructuredLog::Span span(*events_, "dataloader.build");
  const int64_t vocab_size = models::decoder(config_.model_spec).vocab_size();
  if (tokenizer_) {
    log::info(kLog, "Loading tokenizer from tokenizer.json");
    if (const auto note = eos_disagreement(*tokenizer_, config_.hf_assets_path); !note.empty())
      log::info(kLog, "{}", note);
  }
  auto options = loader_options(config_, *config_.dataloader);
  options.vocab_size = vocab_size;
  loader_ = std::make_unique<data::DataLoader>(options, tokenizer_);
  log::info(kLog, "Preparing {}", loader_->description());
}

void Trainer::build_checkpointer() {
  checkpoint::RunFolders folders{config_.dump_folder, config_.hf_assets_path,
                                 tokenizer_path(config_)};
  const models::Family& family = models::find_family(config_.model_spec.name);
  if (family.config_json) hf_config_json_ = family.config_json(config_);
  folders.hf_config_json = hf_config_json_;
  auto key_map = make_key_map(config_.model_spec);
  adapters_ = key_map.adapters;
  checkpointer_ = std::make_unique<checkpoint::Checkpointer>(*config_.checkpoint, folders,
                                                             std::move(key_map), pool_.get());
}

// On a machine that no run has measured yet. No step needs it, so it comes when the first step is
// done, and it is in no time of that step.
void Trainer::measure_peak() {
  if (!std::exchange(peak_is_due_, false)) return;
  const metrics::StructuredLog::Span span(*events_, "measure_peak");
  const auto start = Clock::now();
  const double peak = ops::measured_peak_flops(peak_dtype(config_), *pool_, cache_folder(config_));
  log_peak(peak);
  metrics_->set_peak(peak);
  metrics_->exclude(std::chrono::duration<double>(Clock::now() - start).count());
}

void Trainer::build_metrics() {
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  metrics_ = std::make_unique<metrics::StepMetrics>(
      metrics::StepMetricsOptions{.config = config_.metrics,
                                  .dump_folder = config_.dump_folder,
                                  .colors = terminal && !config_.metrics->disable_color_printing,
                                  .progress = terminal,
                                  .flops_per_token = static_cast<double>(size_.flops_per_token),
                                  .peak_flops = peak_flops_,
                                  .planned_bytes = step_->memory().total(),
                                  .machine_bytes = machine_memory().total,
                                  .total_steps = config_.training.steps});
}

void Trainer::build_profiler() {
  if (!config_.profiler->enable_profiling) return;
  const exec::cpu::Limits limits = machine_limits(config_, *pool_, ops::Measure::again);
  if (std::exchange(peak_is_due_, false)) {
    const double peak = peak_dtype(config_) == DType::bf16 ? limits.flops_bf16 : limits.flops_f32;
    log_peak(peak);
    metrics_->set_peak(peak);
  }
  profiler_ = std::make_unique<profiler::Profiler>(*config_.profiler, config_.dump_folder,
                                                   step_->executables(), limits);
  events_->set_listener([this](std::string_view name) {
    name.empty() ? profiler_->end_phase() : profiler_->begin_phase(name);
  });
}

void Trainer::load_checkpoint() {
  const metrics::StructuredLog::Span span(*events_, "checkpoint_load");
  StockTensors tensors = checkpoint_tensors(*step_);
  const auto draw = [&](const std::vector<std::string>& names) {
    const std::set<std::string> wanted(names.begin(), names.end());
    step_->initialise(seed_, [&](const std::string& fqn) { return wanted.contains(fqn); });
  };
  const auto loaded = checkpointer_->load(tensors.tensors(), [&](const auto& names) {
    draw(names);
    tensors.gather();
  });
  TrainState state;
  read_state(loaded.state, state);
  take_seed(state.seed);
  if (loaded.source == checkpoint::Loaded::Source::fresh) {
    log::info(kLog, "Weights: {} tensors, {} parameters, drawn at random",
              model_tensors(*step_).tensors().size(), with_commas(size_.num_parameters));
    step_->initialise(seed_);
    return;
  }
  log::info(kLog, "Weights: {} tensors, {} parameters, loaded from {}{}", loaded.num_tensors,
            with_commas(loaded.num_elements), loaded.path.string(),
            loaded.absent.empty() ? "" : "; what it lacks starts as in a fresh run");
  // Optimizer state that a load does not bring stays zero.
  tensors.scatter();
  step_->parameters_changed();
  if (!loaded.absent.empty() && !loaded.absent_is_drawn) draw(loaded.absent);
  warn_of_overrides(saved_list(loaded.state, "overrides").value_or(std::vector<std::string>()),
                    config_.override.active, loaded.path);
  if (const auto saved = saved_list(loaded.state, "converters"))
    warn_of_converters(*saved, models::describe_converters(config_.model_spec), loaded.path);
  current_step_ = loaded.source == checkpoint::Loaded::Source::resumed ? loaded.step : state.step;
  schedule_step_ = state.schedule_step;
  optimizer_step_ = state.optimizer_step;
  tokens_seen_ = state.tokens_seen;
  if (const auto at = loaded.state.find("dataloader"); at != loaded.state.end())
    loader_->restore(at->second);
}

// A run that goes on draws on with the seed it began with, unless the options name another.
void Trainer::take_seed(const std::optional<uint64_t>& stored) {
  if (config_.debug.seed) {
    if (stored && *stored != seed_)
      log::info(kLog, "debug.seed {} replaces {}, the one of the checkpoint", seed_, *stored);
  } else if (stored) {
    seed_ = *stored;
    log::info(kLog, "debug.seed is not set; taken from the checkpoint: {}", seed_);
  } else {
    log::info(kLog, "debug.seed is not set; drawn: {}", seed_);
  }
}

}  // namespace rhea
