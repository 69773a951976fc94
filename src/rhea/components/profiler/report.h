// Where the time of recorded steps went.
#pragma once
#include <string>
#include <vector>

#include "rhea/components/profiler/recording.h"
#include "rhea/exec/cpu/profile.h"

namespace rhea::profiler {

// Means over the recorded steps, seconds.
struct Report {
  int64_t first_step = 0, last_step = 0;
  double step = 0;     // wall time
  double kernels = 0;  // inside kernel calls
  exec::cpu::Limits limits;
  std::vector<exec::cpu::TimeRow> ops, modules;  // by op and kernel, by FQN
  // Time of each phase outside kernels and of phases inside it; "rest" is outside all phases.
  std::vector<std::pair<std::string, double>> phases;

  // Kernels and named phases that run none, over the step.
  double explained() const;
};

Report make_report(const Recording& recording, const exec::cpu::Limits& limits);
// Three tables: op and kernel, module, what is not in kernels.
std::string to_text(const Report& report);
std::string to_json(const Report& report);

}  // namespace rhea::profiler
