// Times of kernel calls, summed by op, kernel or module, against what the machine can do.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhea/exec/cpu/backend.h"

namespace rhea::exec::cpu {

// Rates of all threads together, per second; 0: not known.
struct Limits {
  double flops_f32 = 0, flops_bf16 = 0;
  double bytes = 0;  // of memory, reads and writes
};
// Seconds of a call that nothing but its flops or its bytes bounds.
double seconds_at_limit(const NodeReport& node, const Limits& limits);

// What the calls of one node took in a run.
struct NodeTime {
  const NodeReport* node = nullptr;
  double seconds = 0;
  double calls = 1;
};
// Of an executable without recorded calls: `times` are those of `runs` runs.
std::vector<NodeTime> node_times(std::span<const NodeReport> nodes, std::span<const double> times,
                                 int64_t runs);

// Sums over calls, per run.
struct TimeRow {
  std::string name;
  double calls = 0, seconds = 0, flops = 0, bytes = 0;
  double limit = 0;  // seconds_at_limit
};

// Groups of calls: "dot_general (panels)"; the module with layer numbers left out,
// "layers.*.attention.wo".
std::string op_and_kernel(const NodeReport& node);
std::string module_of(const NodeReport& node);

// Sums over the calls that `name` gives one name, slowest first.
std::vector<TimeRow> sum_times(std::span<const NodeTime> times,
                               const std::function<std::string(const NodeReport&)>& name,
                               const Limits& limits = {});

// One line per row: share of `total` seconds (0: of their sum), milliseconds, calls, GFLOP/s, GB/s
// (operands and results counted once), and the share of the limit where it is known.
std::string to_table(std::span<const TimeRow> rows, double total = 0);

// Is `topic` one of the comma list in the environment variable RHEA_LOG? "kernels": which kernels
// are chosen and which refused; "profile": the table above for every executable when it goes away.
bool log_topic(std::string_view topic);

}  // namespace rhea::exec::cpu
