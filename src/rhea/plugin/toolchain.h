// The compiler that plugins are compiled with, and its words.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace rhea::plugin {

struct Toolchain {
  std::filesystem::path compiler;
  std::vector<std::string> flags;  // those of Rhea's build, the headers, what RHEA_CXXFLAGS adds
  // Text that changes when another compiler or other flags would be used.
  std::string identity;
};

// RHEA_CXX, else the compiler of the build, else one of its kind on PATH. Throws Error that names
// what was tried and suggests a plugin built elsewhere; `source` is what was to be compiled.
Toolchain find_toolchain(const std::filesystem::path& source);

// The program `wanted` (the value of RHEA_CXX) unless that is empty, else the first of `candidates`
// that is there: the build's own compiler, then others of its kind, of which a log line tells.
// Throws Error as find_toolchain() does.
std::filesystem::path choose_compiler(const std::filesystem::path& source,
                                      const std::string& wanted,
                                      const std::vector<std::string>& candidates);

// "GCC 12", "Clang 16", or "" where the program does not answer as one of these.
std::string compiler_kind(const std::filesystem::path& compiler);

// The folder below which rhea/plugin/plugin.h lies, installed or in the source tree.
std::vector<std::filesystem::path> header_folders();

// Value of an environment variable, "" where it is not set.
std::string environment(const char* name);

}  // namespace rhea::plugin
