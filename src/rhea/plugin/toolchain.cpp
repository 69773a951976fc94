#include "rhea/plugin/toolchain.h"

#include <dlfcn.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <utility>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/plugin/run_program.h"
#include "rhea/plugin/stamp.h"

namespace rhea::plugin {
namespace {

namespace fs = std::filesystem;

// The file that this code was loaded from: librhea.so, or a program that has it inside.
fs::path own_file() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&own_file), &info) == 0 || info.dli_fname == nullptr)
    return {};
  std::error_code error;
  const fs::path file = fs::canonical(info.dli_fname, error);
  return error ? fs::path(info.dli_fname) : file;
}

// A compiler of the same kind and version as the build's where the build's own is not there.
std::vector<std::string> candidates() {
#if defined(__clang__)
  return {RHEA_BUILD_CXX, "clang++-" RHEA_STAMP_TEXT(__clang_major__), "clang++"};
#else
  return {RHEA_BUILD_CXX, "g++-" RHEA_STAMP_TEXT(__GNUC__), "g++"};
#endif
}

void add_words(const std::string& text, std::vector<std::string>& words) {
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
}

}  // namespace

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

fs::path choose_compiler(const fs::path& source, const std::string& wanted,
                         const std::vector<std::string>& candidates) {
  if (!wanted.empty()) {
    if (const auto found = find_program(wanted)) return *found;
    throw Error(
        "{} cannot be compiled: RHEA_CXX={} is no program that can be run; unset it or set it to "
        "{}, or pass a plugin that was built elsewhere (a .so)",
        source.string(), wanted, candidates.back());
  }
  for (const std::string& name : candidates) {
    const auto found = find_program(name);
    if (!found) continue;
    if (name != candidates.front())
      log::info("plugin", "{} is compiled by {}: the compiler of Rhea's build, {}, is not here",
                source.string(), found->string(), candidates.front());
    return *found;
  }
  throw Error(
      "{} cannot be compiled: there is no C++ compiler on this machine (tried {}). Install {}, set "
      "RHEA_CXX to it, or build the plugin elsewhere against the same Rhea and pass the .so",
      source.string(), fmt::join(candidates, ", "), RHEA_STAMP_COMPILER);
}

std::vector<fs::path> header_folders() {
  const fs::path own = own_file();
  const fs::path build = RHEA_BUILD_FOLDER;
  const bool in_build_tree =
      std::mismatch(build.begin(), build.end(), own.begin(), own.end()).first == build.end();
  if (in_build_tree)
    return {RHEA_HEADER_SOURCE_FOLDER "/src", RHEA_HEADER_SOURCE_FOLDER,
            RHEA_BUILD_FOLDER "/include"};
  const fs::path installed = (own.parent_path() / RHEA_LIB_TO_INCLUDE).lexically_normal();
  std::error_code error;
  if (fs::exists(installed / "rhea/plugin/plugin.h", error)) return {installed};
  throw Error(
      "Rhea's headers are not where they were installed: {} has no rhea/plugin/plugin.h; install "
      "Rhea with `cmake --install`, or pass a plugin that was built elsewhere (a .so)",
      installed.string());
}

std::string compiler_kind(const fs::path& compiler) {
  const ProgramResult macros =
      run_program({compiler.string(), "-dM", "-E", "-x", "c++", "/dev/null"});
  // Clang calls itself GCC 4, too.
  for (const auto& [macro, kind] :
       {std::pair{"#define __clang_major__ ", "Clang "}, std::pair{"#define __GNUC__ ", "GCC "}}) {
    const size_t at = macros.output.find(macro);
    if (macros.status != 0 || at == std::string::npos) continue;
    std::istringstream rest(macros.output.substr(at + std::string_view(macro).size()));
    std::string version;
    rest >> version;
    return kind + version;
  }
  return "";
}

Toolchain find_toolchain(const fs::path& source) {
  Toolchain made;
  made.compiler = choose_compiler(source, environment("RHEA_CXX"), candidates());
  // Line tables are small and let an error name the line of the user's file. A -g of the build or
  // of the user comes later and wins.
  made.flags = {"-g1"};
  add_words(RHEA_BUILD_FLAGS, made.flags);
  for (const fs::path& folder : header_folders()) {
    // As system headers: no warnings from Rhea's own, and they are not listed as the user's.
    made.flags.push_back("-isystem");
    made.flags.push_back(folder.string());
  }
  add_words(environment("RHEA_CXXFLAGS"), made.flags);
  struct stat file {};
  ::stat(made.compiler.c_str(), &file);
  made.identity = fmt::format("{} {} {} {}", made.compiler.string(), file.st_size,
                              file.st_mtim.tv_sec, fmt::join(made.flags, " "));
  return made;
}

}  // namespace rhea::plugin
