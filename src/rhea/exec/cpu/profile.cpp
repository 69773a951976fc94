#include "rhea/exec/cpu/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

namespace rhea::exec::cpu {

std::vector<OpTime> times_by_op(std::span<const NodeReport> nodes, std::span<const double> times,
                                int64_t runs) {
  std::map<std::pair<std::string, std::string>, OpTime> sums;
  for (size_t i = 0; i < nodes.size(); ++i) {
    OpTime& sum = sums[{nodes[i].op, nodes[i].kernel}];
    ++sum.calls;
    sum.seconds += times[i] / static_cast<double>(std::max<int64_t>(1, runs));
    sum.flops += nodes[i].cost.flops;
    sum.bytes += nodes[i].cost.bytes;
  }
  std::vector<OpTime> result;
  for (auto& [key, sum] : sums) {
    std::tie(sum.op, sum.kernel) = key;
    result.push_back(std::move(sum));
  }
  std::ranges::sort(result, std::greater<>(), &OpTime::seconds);
  return result;
}

std::string to_table(std::span<const OpTime> times) {
  double total = 0;
  for (const OpTime& time : times) total += time.seconds;
  std::string text = fmt::format("{:.3f} ms\n", total * 1e3);
  for (const OpTime& time : times) {
    const double seconds = std::max(time.seconds, 1e-12);
    text +=
        fmt::format("  {:5.1f} % {:10.3f} ms {:5} calls {:9.2f} GFLOP/s {:7.2f} GB/s  {} ({})\n",
                    100 * time.seconds / std::max(total, 1e-12), time.seconds * 1e3, time.calls,
                    time.flops / seconds * 1e-9, time.bytes / seconds * 1e-9, time.op, time.kernel);
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
