#include "rhea/base/numa.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>

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

}  // namespace rhea
