// How much memory this process may have: of the machine, its control group and its own limits.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace rhea {

struct MachineMemory {
  int64_t total = 0;      // of the machine or its control group, whichever is less
  int64_t available = 0;  // what may still be allocated, below every limit; never negative
  std::string bound;      // what sets `available`: "the machine: 8.00 of 16.00 GiB are free"
};

// Control groups of versions 1 and 2 with the groups above them, MemAvailable and free swap, and
// the limits that `ulimit -v` and `ulimit -d` set. Files that cannot be read set no bound.
MachineMemory machine_memory();
// The same from the files below `root`, without the limits of this process.
MachineMemory machine_memory(const std::filesystem::path& root);

// Throws ExitError with out_of_memory where fewer than `bytes` are left: the system would give them
// and end the process once they are used. "<what> needs 12.00 GiB of memory, 8.00 GiB are left
// (...); <remedy>".
void require_memory(double bytes, std::string_view what, std::string_view remedy);

// Value of `key` in /proc/meminfo's format ("MemTotal:  16303428 kB"), in bytes; nothing where the
// key is absent.
std::optional<int64_t> meminfo_bytes(std::string_view meminfo, std::string_view key);
// Number at the start of `text` after blanks; nothing for another word, such as the "max" of a
// control group without limit.
std::optional<int64_t> leading_integer(std::string_view text);
// Whole text of a file, empty where it cannot be read (files under /proc and /sys come and go).
std::string read_text(const std::filesystem::path& path);

}  // namespace rhea
