// What a recorded cycle holds: when steps, phases and kernel calls began and ended.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "rhea/exec/cpu/backend.h"

namespace rhea::profiler {

using Time = std::chrono::steady_clock::time_point;

inline double seconds_between(Time begin, Time end) {
  return std::chrono::duration<double>(end - begin).count();
}

// A part of a step that has a name in the structured log; phases may lie in each other.
struct Phase {
  std::string name;
  Time begin, end;
};

struct Graph {
  std::string name;
  const std::vector<exec::cpu::NodeReport>* nodes = nullptr;
  exec::cpu::CallLog log;
};

struct Recording {
  struct Step {
    int64_t number = 0;
    Time begin, end;
  };
  std::vector<Step> steps;
  std::vector<Phase> phases;  // in the order of their ends
  std::vector<Graph> graphs;
};

}  // namespace rhea::profiler
