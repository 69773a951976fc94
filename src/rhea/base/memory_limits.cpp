// Reads /proc/meminfo and the control group's files.
#include "rhea/base/memory_limits.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace rhea {
namespace {

namespace fs = std::filesystem;

// The number behind `key` at the begin of a line, or of the whole file where `key` is empty.
std::optional<int64_t> number_in(const fs::path& file, const std::string& key) {
  std::ifstream stream(file);
  for (std::string word; key.empty() || stream >> word;) {
    if (int64_t value = 0; word == key) {
      if (stream >> value) return value;
      return std::nullopt;  // "max"
    }
    std::getline(stream, word);
  }
  return std::nullopt;
}

int64_t machine_leaves(const fs::path& root) {
  const fs::path meminfo = root / "proc/meminfo";
  const auto available = number_in(meminfo, "MemAvailable:");
  if (!available) return std::numeric_limits<int64_t>::max();
  return (*available + number_in(meminfo, "SwapFree:").value_or(0)) * 1024;
}

int64_t group_leaves(const fs::path& folder) {
  const auto limit = number_in(folder / "memory.max", "");
  const auto current = number_in(folder / "memory.current", "");
  if (!limit || !current) return std::numeric_limits<int64_t>::max();
  // Caches of files count as used, but go when memory is needed.
  const int64_t caches = number_in(folder / "memory.stat", "inactive_file").value_or(0);
  return std::max<int64_t>(0, *limit - *current + caches);
}

}  // namespace

int64_t available_memory_bytes(const fs::path& root) {
  int64_t result = machine_leaves(root);
  const fs::path groups = root / "sys/fs/cgroup";
  std::ifstream own(root / "proc/self/cgroup");
  for (std::string line; std::getline(own, line);) {
    if (!line.starts_with("0::/")) continue;
    for (fs::path group = line.substr(4); !group.empty(); group = group.parent_path())
      result = std::min(result, group_leaves(groups / group));
  }
  return std::min(result, group_leaves(groups));
}

}  // namespace rhea
