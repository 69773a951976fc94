// Begin and end of recording, and the files.
#include "rhea/components/profiler/profiler.h"

#include <fmt/format.h>

#include "rhea/base/log.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/profiler/chrome_trace.h"
#include "rhea/components/profiler/schedule.h"

namespace rhea::profiler {
namespace {

constexpr const char* kLog = "profiler";

Time now() { return std::chrono::steady_clock::now(); }

}  // namespace

Profiler::Profiler(const ProfilerConfig& config, const std::filesystem::path& dump_folder,
                   const std::vector<std::pair<std::string, exec::cpu::CpuExecutable*>>& graphs,
                   const exec::cpu::Limits& limits, int rank)
    : config_(config),
      folder_(dump_folder / config.save_traces_folder),
      limits_(limits),
      rank_(rank) {
  for (const auto& [name, executable] : graphs) {
    recording_.graphs.push_back({name, &executable->nodes(), {}});
    executables_.push_back(executable);
  }
  log::info(kLog, "Profiling active. Traces will be saved at {}", folder_.string());
}

void Profiler::record(bool on) {
  recording_now_ = on;
  for (size_t i = 0; i < executables_.size(); ++i)
    executables_[i]->record_calls(on ? &recording_.graphs[i].log : nullptr);
}

void Profiler::begin_step(int64_t step) {
  const StepKind kind = kind_of_step(config_, step);
  ends_cycle_ = kind == StepKind::recorded_last;
  if (kind == StepKind::idle) return;
  record(true);
  recording_.steps.push_back({step, now(), {}});
}

void Profiler::end_step() {
  if (!recording_now_) return;
  recording_.steps.back().end = now();
  record(false);
  open_.clear();
  if (!ends_cycle_) return;
  write(recording_.steps.back().number);
  recording_.steps.clear();
  recording_.phases.clear();
  for (Graph& graph : recording_.graphs) graph.log = {};
}

void Profiler::begin_phase(std::string_view name) {
  if (recording_now_) open_.push_back({std::string(name), now(), {}});
}

void Profiler::end_phase() {
  if (!recording_now_ || open_.empty()) return;
  open_.back().end = now();
  recording_.phases.push_back(std::move(open_.back()));
  open_.pop_back();
}

void Profiler::write(int64_t step) {
  const Time begin = now();
  log::info(kLog, "Dumping profiler traces at step {}", step);
  const auto folder = folder_ / fmt::format("iteration_{}", step);
  std::filesystem::create_directories(folder);
  write_file_atomic(folder / fmt::format("rank{}_trace.json.gz", rank_),
                    gzip(chrome_trace(recording_, rank_)));
  const Report report = make_report(recording_, limits_);
  write_file_atomic(folder / fmt::format("rank{}_profile.json", rank_), to_json(report));
  log::info(kLog, "Finished dumping profiler traces in {:.2f} seconds",
            seconds_between(begin, now()));
  log::info(kLog, "{}", to_text(report));
}

}  // namespace rhea::profiler
