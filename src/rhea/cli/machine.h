// What `rhea doctor` finds out about the machine. Probing only; doctor.cpp judges and prints.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rhea::cli {

// The chosen word of a kernel setting such as "always [madvise] never"; the whole text where none
// is marked.
std::string selected_word(std::string_view setting);
// Cores of the control group file cpu.max ("max 100000" or "150000 100000"); nothing where there is
// no limit.
std::optional<double> cgroup_cpu_limit(std::string_view cpu_max);

// Full path of a program looked up as the shell does, empty where there is none.
std::string find_program(std::string_view name);
// First line that `program --version` prints, empty where it cannot be run.
std::string program_version(const std::string& program);
// PJRT plugins named by PJRT_PLUGIN_LIBRARY_PATH and RHEA_TEST_PJRT_PLUGIN or lying where vendors
// install them.
std::vector<std::string> find_pjrt_plugins();

}  // namespace rhea::cli
