// `rhea doctor`: what this machine has, and what is missing for what.
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <pcre2.h>
#include <spdlog/version.h>
#include <unicode/uvernum.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "rhea/base/cpu_features.h"
#include "rhea/base/cpu_tiles.h"
#include "rhea/base/error.h"
#include "rhea/base/machine_memory.h"
#include "rhea/base/numa.h"
#include "rhea/base/thread_pool.h"
#include "rhea/base/version.h"
#include "rhea/cli/commands.h"
#include "rhea/cli/machine.h"
#include "rhea/components/data/debug_text.h"
#include "rhea/ops/onednn_version.h"

namespace rhea::cli {
namespace {

struct Gap {
  std::string what;
  std::string consequence;
};
using Gaps = std::vector<Gap>;

void row(std::string_view name, std::string_view text) { fmt::print("  {:<18} {}\n", name, text); }

std::string gib(int64_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (int64_t{1} << 30));
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? fmt::format("{}={}", name, value) : fmt::format("{} not set", name);
}

void report_cpu(Gaps& gaps) {
  fmt::print("cpu\n");
  row("model", cpu_brand());
  row("instruction set", isa_in_use());
  row("matrix tiles", detected_tiles() ? active_tiles() ? "AMX, for products in bf16 by oneDNN"
                                                        : "AMX, not in use (RHEA_ISA)"
                      : active_tiles() ? "none; products are chosen as with AMX (RHEA_ISA)"
                                       : "none");
  row("override", environment("RHEA_ISA"));
  if (detected_isa() < Isa::avx512)
    gaps.push_back({"AVX-512", "matrix products and fused kernels run in their slower variants"});
  if (detected_isa() < Isa::avx512_bf16)
    gaps.push_back(
        {"AVX-512 bf16 instructions", "products of bf16 widen it and run at the speed of f32"});
}

void report_memory(Gaps& gaps) {
  fmt::print("memory\n");
  const std::string meminfo = read_text("/proc/meminfo");
  const auto total = meminfo_bytes(meminfo, "MemTotal");
  const MachineMemory memory = machine_memory();
  row("total", total ? gib(*total) : "unknown");
  if (total && memory.total < *total) row("container limit", gib(memory.total));
  row("available", fmt::format("{} ({})", gib(memory.available), memory.bound));
  if (const std::vector<int> nodes = memory_nodes(); nodes.size() > 1)
    row("NUMA nodes",
        fmt::format("{}, memory of a run is spread over them{}", fmt::join(nodes, ", "),
                    cpu_nodes(allowed_cpus()).size() > 1 ? ", threads keep to one each" : ""));
  const char* setting = "/sys/kernel/mm/transparent_hugepage/enabled";
  const bool known = std::filesystem::exists("/sys/kernel");
  const std::string transparent = selected_word(read_text(setting));
  row("huge pages", !known                ? "transparent: unknown, /sys is not mounted"
                    : transparent.empty() ? "transparent: not offered by this kernel"
                                          : "transparent: " + transparent);
  const auto reserved = meminfo_bytes(meminfo, "HugePages_Total");
  const auto page = meminfo_bytes(meminfo, "Hugepagesize");
  if (reserved && page) row("", fmt::format("reserved: {} of {} KiB", *reserved, *page / 1024));
  if (known && (transparent.empty() || transparent == "never"))
    gaps.push_back({"transparent huge pages", "large arenas use 4 KiB pages: some percent slower"});
}

void report_threads() {
  fmt::print("threads\n");
  const int64_t online = sysconf(_SC_NPROCESSORS_ONLN);
  row("cores", fmt::format("{} usable by this process, {} online", num_available_cores(), online));
  if (const auto limit = cgroup_cpu_limit(read_text("/sys/fs/cgroup/cpu.max")))
    row("container limit", fmt::format("{:.2f} cores", *limit));
  for (const char* name : {"OMP_NUM_THREADS", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY"})
    row("OpenMP", environment(name));
  row("",
      "(Rhea's own pool does the work: --executor.num_threads; OpenMP settings do not change it)");
}

std::string pcre2_version() {
  std::array<char, 64> text{};
  pcre2_config_8(PCRE2_CONFIG_VERSION, text.data());
  return text.data();
}

void report_libraries() {
  fmt::print("libraries\n");
  row("oneDNN", ops::onednn_version());
  row("ICU", U_ICU_VERSION);
  row("PCRE2", pcre2_version());
  row("zlib", zlibVersion());
  row("zstd", ZSTD_versionString());
  row("fmt",
      fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100));
  row("spdlog", fmt::format("{}.{}.{}", SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH));
}

// First of the candidates that exists, or an empty string.
std::string first_program(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (name == nullptr) continue;
    std::string path = find_program(name);
    if (!path.empty()) return path;
  }
  return "";
}

void report_program(std::string_view name, const std::string& path, std::string_view consequence,
                    Gaps& gaps) {
  if (path.empty()) {
    row(name, "not found");
    gaps.push_back({std::string(name), std::string(consequence)});
  } else {
    row(name, fmt::format("{} ({})", path, program_version(path)));
  }
}

void report_tools(Gaps& gaps) {
  fmt::print("tools\n");
  report_program("C++ compiler", first_program({std::getenv("CXX"), "g++", "clang++-16"}),
                 "recipes and overrides in a .cpp file of your own cannot be compiled", gaps);
  report_program("MPI", first_program({"mpirun", "mpiexec"}),
                 "runs over several hosts cannot be started with mpirun", gaps);
  const auto plugins = find_pjrt_plugins();
  for (const std::string& plugin : plugins) row("PJRT plugin", plugin);
  if (plugins.empty()) {
    row("PJRT plugin", "none found");
    gaps.push_back({"PJRT plugin",
                    "runs use the CPU; set PJRT_PLUGIN_LIBRARY_PATH where an accelerator's plugin "
                    "is installed elsewhere"});
  }
}

void report_data(Gaps& gaps) {
  fmt::print("data\n");
  std::error_code error;
  const char* folder = data::kDebugTextFolder;
  if (std::filesystem::is_directory(folder, error)) {
    row("debug_text", folder);
  } else {
    row("debug_text", "not found");
    gaps.push_back({"Debian packages fortunes and fortunes-min",
                    "the data set debug_text of the debug recipes cannot be read"});
  }
}

}  // namespace

int cmd_doctor(Args args) {
  if (!args.empty() && args[0] == "--help") {
    fmt::print(
        "usage: rhea doctor\n\nPrints what this machine has, and what is missing for what.\n");
    return 0;
  }
  if (!args.empty()) throw Error("doctor takes no options, found '{}'", args[0]);
  fmt::print("rhea {}\n", version_line());
  Gaps gaps;
  report_cpu(gaps);
  report_memory(gaps);
  report_threads();
  report_libraries();
  report_tools(gaps);
  report_data(gaps);
  fmt::print("missing\n");
  if (gaps.empty()) fmt::print("  nothing\n");
  for (const Gap& gap : gaps) fmt::print("  {}: {}\n", gap.what, gap.consequence);
  return 0;
}

}  // namespace rhea::cli
