#include "rhea/base/numa.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <string>

#include "rhea/base/machine_memory.h"

namespace rhea {
namespace {

constexpr int kMostNodes = 1024;  // of any Linux build

}  // namespace

std::vector<int> parse_node_list(std::string_view text) {
  std::vector<int> nodes;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    int first = 0;
    auto [after, error] = std::from_chars(at, end, first);
    if (error != std::errc() || first < 0) return nodes;
    int last = first;
    if (after != end && *after == '-') {
      const auto range = std::from_chars(after + 1, end, last);
      if (range.ec != std::errc()) return nodes;
      after = range.ptr;
    }
    for (int node = first; node <= std::min(last, kMostNodes - 1); ++node) nodes.push_back(node);
    if (after == end || *after != ',') return nodes;
    at = after + 1;
  }
}

std::vector<int> memory_nodes(const std::filesystem::path& root) {
  constexpr std::string_view kKey = "Mems_allowed_list:";
  const std::string status = read_text(root / "proc/self/status");
  const size_t key = status.find(kKey);
  if (key == std::string::npos) return {};
  std::string_view list = std::string_view(status).substr(key + kKey.size());
  list.remove_prefix(std::min(list.find_first_not_of(" \t"), list.size()));
  const std::vector<int> allowed = parse_node_list(list.substr(0, list.find('\n')));
  const std::vector<int> present =
      parse_node_list(read_text(root / "sys/devices/system/node/has_memory"));
  std::vector<int> nodes;
  std::set_intersection(allowed.begin(), allowed.end(), present.begin(), present.end(),
                        std::back_inserter(nodes));
  return nodes;
}

bool interleave_pages(void* data, size_t bytes, const std::vector<int>& nodes) {
  int policy = MPOL_DEFAULT;
  if (nodes.empty() || syscall(SYS_get_mempolicy, &policy, nullptr, 0, nullptr, 0) != 0 ||
      policy != MPOL_DEFAULT)
    return false;
  constexpr int kWordBits = sizeof(unsigned long) * CHAR_BIT;
  std::array<unsigned long, kMostNodes / kWordBits> mask{};
  for (const int node : nodes)
    mask[static_cast<size_t>(node / kWordBits)] |= 1UL << (node % kWordBits);
  return syscall(SYS_mbind, data, bytes, MPOL_INTERLEAVE, mask.data(),
                 static_cast<unsigned long>(kMostNodes), 0U) == 0;
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<CpuNode> cpu_nodes(const std::vector<int>& allowed, const std::filesystem::path& root) {
  const std::filesystem::path folder = root / "sys/devices/system/node";
  std::vector<CpuNode> nodes;
  for (const int number : parse_node_list(read_text(folder / "online"))) {
    const std::vector<int> present =
        parse_node_list(read_text(folder / ("node" + std::to_string(number)) / "cpulist"));
    CpuNode node{number, {}};
    std::ranges::set_intersection(present, allowed, std::back_inserter(node.cpus));
    if (!node.cpus.empty()) nodes.push_back(std::move(node));
  }
  return nodes;
}

std::vector<size_t> nodes_of_workers(int num_threads, const std::vector<CpuNode>& nodes) {
  std::vector<size_t> node_of;
  if (nodes.size() < 2) return node_of;
  size_t num_cpus = 0;
  for (const CpuNode& node : nodes) num_cpus += node.cpus.size();
  const auto workers = static_cast<size_t>(num_threads);
  size_t node = 0, end = nodes[0].cpus.size();
  for (size_t worker = 0; worker < workers; ++worker) {
    while (worker * num_cpus / workers >= end) end += nodes[++node].cpus.size();
    node_of.push_back(node);
  }
  return node_of;
}

bool keep_thread_on(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) {
    if (cpu < CPU_SETSIZE) CPU_SET(static_cast<size_t>(cpu), &set);
  }
  return sched_setaffinity(0, sizeof(set), &set) == 0;
}

}  // namespace rhea
