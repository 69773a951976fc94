// Probes of memory, limits, programs and plugins.
#include "rhea/cli/machine.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>

#include "rhea/base/machine_memory.h"

namespace rhea::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> split_path_list(const char* list) {
  std::vector<std::string> parts;
  if (list == nullptr) return parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ':');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string selected_word(std::string_view setting) {
  const size_t open = setting.find('[');
  const size_t close = setting.find(']');
  if (open != std::string_view::npos && close != std::string_view::npos && open < close)
    return std::string(setting.substr(open + 1, close - open - 1));
  return std::string(setting.substr(0, setting.find_last_not_of(" \n") + 1));
}

std::optional<double> cgroup_cpu_limit(std::string_view cpu_max) {
  const auto quota = leading_integer(cpu_max);
  const size_t blank = cpu_max.find(' ');
  if (!quota || blank == std::string_view::npos) return std::nullopt;
  const auto period = leading_integer(cpu_max.substr(blank));
  if (!period || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::string find_program(std::string_view name) {
  if (name.empty()) return "";
  if (name.find('/') != std::string_view::npos) return is_program(name) ? std::string(name) : "";
  for (const std::string& folder : split_path_list(std::getenv("PATH"))) {
    const fs::path candidate = fs::path(folder) / name;
    if (is_program(candidate)) return candidate.string();
  }
  return "";
}

std::string program_version(const std::string& program) {
  std::string quoted = "'";
  for (const char c : program) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  const std::string command = quoted + "' --version 2>/dev/null </dev/null";
  const auto close = [](FILE* pipe) { pclose(pipe); };
  const std::unique_ptr<FILE, decltype(close)> pipe(popen(command.c_str(), "r"), close);
  if (!pipe) return "";
  char line[256];
  if (std::fgets(line, sizeof line, pipe.get()) == nullptr) return "";
  std::string text(line);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::vector<std::string> find_pjrt_plugins() {
  std::vector<std::string> found;
  const auto add = [&](const fs::path& path) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) return;
    if (std::find(found.begin(), found.end(), path.string()) == found.end())
      found.push_back(path.string());
  };
  for (const char* variable : {"PJRT_PLUGIN_LIBRARY_PATH", "RHEA_TEST_PJRT_PLUGIN"})
    for (const std::string& path : split_path_list(std::getenv(variable))) add(path);
  std::vector<std::string> folders = split_path_list(std::getenv("LD_LIBRARY_PATH"));
  folders.insert(folders.end(), {"/opt/aws/neuron/lib", "/usr/local/lib", "/usr/lib"});
  for (const std::string& folder : folders)
    for (const char* name : {"libneuronpjrt.so", "libtpu.so", "xla_cuda_plugin.so",
                             "xla_rocm_plugin.so", "xla_cpu_pjrt.so"})
      add(fs::path(folder) / name);
  return found;
}

}  // namespace rhea::cli
