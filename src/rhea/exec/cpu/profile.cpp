#include "rhea/exec/cpu/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

namespace rhea::exec::cpu {

double seconds_at_limit(const NodeReport& node, const Limits& limits) {
  const double flops = node.type.dtype == DType::bf16 ? limits.flops_bf16 : limits.flops_f32;
  const double computing = flops > 0 ? node.cost.flops / flops : 0;
  const double moving = limits.bytes > 0 ? node.cost.bytes / limits.bytes : 0;
  return std::max(computing, moving);
}

std::string op_and_kernel(const NodeReport& node) {
  return fmt::format("{} ({})", node.op, node.kernel);
}

std::string module_of(const NodeReport& node) {
  if (node.fqn.empty()) return "-";
  std::string name;
  std::string_view rest = node.fqn;
  while (true) {
    const auto dot = rest.find('.');
    const std::string_view word = rest.substr(0, dot);
    const bool number = word.find_first_not_of("0123456789") == std::string_view::npos;
    name += number ? "*" : word;
    if (dot == std::string_view::npos) return name;
    name += '.';
    rest.remove_prefix(dot + 1);
  }
}

std::vector<NodeTime> node_times(std::span<const NodeReport> nodes, std::span<const double> times,
                                 int64_t runs) {
  std::vector<NodeTime> result;
  for (size_t i = 0; i < nodes.size(); ++i)
    result.push_back({&nodes[i], times[i] / static_cast<double>(std::max<int64_t>(1, runs))});
  return result;
}

std::vector<TimeRow> sum_times(std::span<const NodeTime> times,
                               const std::function<std::string(const NodeReport&)>& name,
                               const Limits& limits) {
  std::map<std::string, TimeRow> sums;
  for (const NodeTime& time : times) {
    TimeRow& sum = sums[name(*time.node)];
    sum.calls += time.calls;
    sum.seconds += time.seconds;
    sum.flops += time.calls * time.node->cost.flops;
    sum.bytes += time.calls * time.node->cost.bytes;
    sum.limit += time.calls * seconds_at_limit(*time.node, limits);
  }
  std::vector<TimeRow> result;
  for (auto& [key, sum] : sums) {
    sum.name = key;
    result.push_back(std::move(sum));
  }
  std::ranges::sort(result, std::greater<>(), &TimeRow::seconds);
  return result;
}

std::string to_table(std::span<const TimeRow> rows, double total) {
  double sum = 0;
  for (const TimeRow& row : rows) sum += row.seconds;
  if (total <= 0) total = std::max(sum, 1e-12);
  std::string text = fmt::format("{:.3f} ms\n", sum * 1e3);
  for (const TimeRow& row : rows) {
    const double seconds = std::max(row.seconds, 1e-12);
    text += fmt::format("  {:5.1f} % {:10.3f} ms {:6g} calls {:9.2f} GFLOP/s {:7.2f} GB/s  ",
                        100 * row.seconds / total, row.seconds * 1e3, row.calls,
                        row.flops / seconds * 1e-9, row.bytes / seconds * 1e-9);
    if (row.limit > 0) text += fmt::format("{:5.1f} % of the limit  ", 100 * row.limit / seconds);
    text += row.name + '\n';
  }
  return text;
}

bool log_topic(std::string_view topic) {
  const char* list = std::getenv("RHEA_LOG");
  if (list == nullptr) return false;
  std::string_view rest(list);
  while (true) {
    const auto comma = rest.find(',');
    if (rest.substr(0, comma) == topic) return true;
    if (comma == std::string_view::npos) return false;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace rhea::exec::cpu
