// Times of kernel calls, summed by op class.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/exec/cpu/backend.h"

namespace rhea::exec::cpu {

struct OpTime {
  std::string op, kernel;
  int calls = 0;                             // per run
  double seconds = 0, flops = 0, bytes = 0;  // of all calls of one run
};

// Sums over the calls of one kernel of one op, slowest first. `times` are those of `runs` runs
// (CpuExecutable::take_times).
std::vector<OpTime> times_by_op(std::span<const NodeReport> nodes, std::span<const double> times,
                                int64_t runs);

// One line per entry: share, milliseconds, calls, GFLOP/s, GB/s (operands and results counted
// once).
std::string to_table(std::span<const OpTime> times);

// Is `topic` one of the comma list in the environment variable RHEA_LOG? "kernels": which kernels
// are chosen and which refused; "profile": the table above for every executable when it goes away.
bool log_topic(std::string_view topic);

}  // namespace rhea::exec::cpu
