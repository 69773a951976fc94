// Every bound is one candidate; the tightest wins.
#include "rhea/base/machine_memory.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <sstream>

#include "rhea/base/error.h"

namespace rhea {
namespace {

namespace fs = std::filesystem;

constexpr double kGiB = int64_t{1} << 30;

double gib(int64_t bytes) { return static_cast<double>(bytes) / kGiB; }

// Value of "name number" among the lines of a control group's memory.stat.
int64_t stat_value(const std::string& stat, std::string_view name) {
  std::istringstream lines(stat);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name) && line.substr(name.size()).starts_with(" "))
      return leading_integer(line.substr(name.size())).value_or(0);
  }
  return 0;
}

void bound_by(MachineMemory& memory, int64_t available, std::string text) {
  available = std::max<int64_t>(available, 0);
  if (available >= memory.available) return;
  memory.available = available;
  memory.bound = std::move(text);
}

struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* file_cache[2];  // pages that the kernel takes back before it refuses
};
constexpr GroupFiles kVersion2 = {"memory.max", "memory.current", {"active_file", "inactive_file"}};
constexpr GroupFiles kVersion1 = {
    "memory.limit_in_bytes", "memory.usage_in_bytes", {"total_active_file", "total_inactive_file"}};

// The group at mount/path and all above it: each may have a limit. In a container the path can be
// one of the host's, which is not there; the mount itself then is the container's group.
void bound_by_groups(MachineMemory& memory, const fs::path& mount, const fs::path& group,
                     const GroupFiles& files) {
  fs::path relative = group.relative_path();
  while (true) {
    const fs::path folder = relative.empty() ? mount : mount / relative;
    const auto limit = leading_integer(read_text(folder / files.limit));
    if (limit && *limit < memory.total) {
      const int64_t used = leading_integer(read_text(folder / files.usage)).value_or(0);
      const std::string stat = read_text(folder / "memory.stat");
      int64_t cache = 0;
      for (const char* name : files.file_cache) cache += stat_value(stat, name);
      memory.total = *limit;
      bound_by(memory, *limit - std::max<int64_t>(used - cache, 0),
               fmt::format("the control group's {}: {:.2f} of {:.2f} GiB are free", files.limit,
                           gib(*limit - std::max<int64_t>(used - cache, 0)), gib(*limit)));
    }
    if (relative.empty()) return;
    relative = relative.parent_path();
  }
}

void bound_by_limit(MachineMemory& memory, __rlimit_resource resource, const char* option,
                    const char* used_key) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      limit.rlim_cur > static_cast<rlim_t>(std::numeric_limits<int64_t>::max()))
    return;
  const auto bytes = static_cast<int64_t>(limit.rlim_cur);
  const int64_t used = meminfo_bytes(read_text("/proc/self/status"), used_key).value_or(0);
  bound_by(memory, bytes - used,
           fmt::format("ulimit {}: {:.2f} GiB, of which the program itself takes {:.2f}", option,
                       gib(bytes), gib(used)));
}

}  // namespace

MachineMemory machine_memory(const fs::path& root) {
  const std::string meminfo = read_text(root / "proc/meminfo");
  MachineMemory memory;
  memory.total = meminfo_bytes(meminfo, "MemTotal")
                     .value_or(static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) *
                               static_cast<int64_t>(sysconf(_SC_PAGESIZE)));
  memory.available = meminfo_bytes(meminfo, "MemAvailable").value_or(memory.total) +
                     meminfo_bytes(meminfo, "SwapFree").value_or(0);
  memory.bound = fmt::format("the machine: {:.2f} of {:.2f} GiB are free", gib(memory.available),
                             gib(memory.total));
  std::istringstream groups(read_text(root / "proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      bound_by_groups(memory, root / "sys/fs/cgroup", group, kVersion2);
      bound_by_groups(memory, root / "sys/fs/cgroup/unified", group, kVersion2);
    } else if (controllers.find(",memory,") != std::string::npos) {
      bound_by_groups(memory, root / "sys/fs/cgroup/memory", group, kVersion1);
    }
  }
  return memory;
}

MachineMemory machine_memory() {
  MachineMemory memory = machine_memory("/");
  bound_by_limit(memory, RLIMIT_AS, "-v", "VmSize");
  bound_by_limit(memory, RLIMIT_DATA, "-d", "VmData");
  return memory;
}

void require_memory(double bytes, std::string_view what, std::string_view remedy) {
  const MachineMemory memory = machine_memory();
  if (bytes <= static_cast<double>(memory.available)) return;
  throw ExitError(ExitCode::out_of_memory,
                  fmt::format("{} needs {:.2f} GiB of memory, {:.2f} GiB are left ({}); {}", what,
                              bytes / kGiB, gib(memory.available), memory.bound, remedy));
}

std::optional<int64_t> leading_integer(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return std::nullopt;
  int64_t value = 0;
  const auto result = std::from_chars(text.data() + begin, text.data() + text.size(), value);
  if (result.ec != std::errc{}) return std::nullopt;
  return value;
}

std::optional<int64_t> meminfo_bytes(std::string_view meminfo, std::string_view key) {
  for (size_t begin = 0; begin < meminfo.size();) {
    const size_t end = std::min(meminfo.find('\n', begin), meminfo.size());
    const std::string_view line = meminfo.substr(begin, end - begin);
    if (line.starts_with(key) && line.substr(key.size()).starts_with(":")) {
      const auto value = leading_integer(line.substr(key.size() + 1));
      if (!value) return std::nullopt;
      return line.ends_with("kB") ? *value * 1024 : *value;
    }
    begin = end + 1;
  }
  return std::nullopt;
}

std::string read_text(const fs::path& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace rhea
