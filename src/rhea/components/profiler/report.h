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
  // Rows of every table but `layers` tell directions apart: "dot_general (panels), input gradient".
  std::vector<exec::cpu::TimeRow> directions, ops;
  std::vector<exec::cpu::TimeRow> modules;  // with one row for a module of all layers
  std::vector<exec::cpu::TimeRow> layers;   // "layers.3", and what is in no layer
  std::vector<exec::cpu::TimeRow> fqns;     // each module of each layer; in the file only
  // Time of each phase outside kernels and of phases inside it; "rest" is outside all phases.
  std::vector<std::pair<std::string, double>> phases;

  // Kernels and named phases that run none, over the step.
  double explained() const;
};

Report make_report(const Recording& recording, const exec::cpu::Limits& limits);
// "forward", "input gradient", ... (passes/direction.h); in a graph that has no way back its name.
std::string part_of(const Graph& graph, const exec::cpu::NodeReport& node);
// Tables: direction, op and kernel, module, layer, what is not in kernels.
std::string to_text(const Report& report);
std::string to_json(const Report& report);

}  // namespace rhea::profiler
