// Records the steps that profiler.* asks for and writes what they spent their time on.
#pragma once
#include <filesystem>
#include <string_view>
#include <vector>

#include "rhea/components/profiler/recording.h"
#include "rhea/components/profiler/report.h"
#include "rhea/config/sections/metrics.h"

namespace rhea::profiler {

// Of one rank. After each cycle (profiler/schedule.h) the folder
// {dump_folder}/{save_traces_folder}/iteration_{step} gets rank{r}_trace.json.gz for Perfetto or
// chrome://tracing, and the tables as rank{r}_profile.json; the log gets them as text. Steps
// outside a cycle's recorded part cost nothing, and recording changes no result: a recorded step
// reads the clock twice per call and twice per handful of items that a worker takes.
class Profiler {
 public:
  // `graphs` names the executables of the step; they must outlive this.
  Profiler(const ProfilerConfig& config, const std::filesystem::path& dump_folder,
           const std::vector<std::pair<std::string, exec::cpu::CpuExecutable*>>& graphs,
           const exec::cpu::Limits& limits, int rank = 0);

  // Around everything that belongs to a step; `step` counts from 1.
  void begin_step(int64_t step);
  void end_step();
  // A phase of the current step begins or ends; inner phases end first.
  void begin_phase(std::string_view name);
  void end_phase();

 private:
  void record(bool on);
  void write(int64_t step);

  ProfilerConfig config_;
  std::filesystem::path folder_;
  std::vector<exec::cpu::CpuExecutable*> executables_;
  exec::cpu::Limits limits_;
  int rank_;
  Recording recording_;
  std::vector<Phase> open_;
  bool recording_now_ = false, ends_cycle_ = false;
};

}  // namespace rhea::profiler
