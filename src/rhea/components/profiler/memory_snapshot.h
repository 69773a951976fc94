// Which buffers of a step lie where in memory, and for how long.
#pragma once
#include <filesystem>
#include <string>

#include "rhea/components/train_step/train_step.h"
#include "rhea/config/sections/metrics.h"

namespace rhea::profiler {

// Memory is planned before the first step and never changes, so a snapshot is that plan: bytes by
// class, the tensors that outlive steps by name, and every value of the arena with its FQN, offset
// and the kernel calls between which it lives.
class MemorySnapshot {
 public:
  MemorySnapshot(const ProfilerConfig& config, const std::filesystem::path& dump_folder,
                 const train_step::StepGraphs& graphs, const train_step::StepPlan& plan,
                 int rank = 0);

  // After `step`: writes {dump_folder}/{folder}/step_{step}/{rank}_step_{step}.json where a
  // snapshot is due.
  void end_step(int64_t step);
  // The same for a run that cannot get its memory, into step_{step}_exit.
  void write_at_exit(int64_t step);

 private:
  void write(int64_t step, const std::string& suffix);

  int64_t freq_;
  std::filesystem::path folder_;
  int rank_;
  std::string body_;  // all members but the step
};

}  // namespace rhea::profiler
