#include "rhea/plugin/loader.h"

#include <dlfcn.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>

#include "rhea/base/error.h"
#include "rhea/plugin/cache.h"
#include "rhea/plugin/exit_guard.h"
#include "rhea/plugin/plugin.h"
#include "rhea/plugin/runs.h"
#include "rhea/plugin/shared_object.h"
#include "rhea/plugin/throw_site.h"

namespace rhea::plugin {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConfigPrefix = "rhea_config_";
constexpr const char* kPluginFunction = "rhea_plugin_register";

bool is_source(const fs::path& file) {
  const fs::path extension = file.extension();
  return extension == ".cpp" || extension == ".cc" || extension == ".cxx";
}

// Runs a function of the user; what it throws becomes an Error that names the line.
template <class F>
auto call_user(const fs::path& file, std::string_view what, F&& function) {
  const auto text = [&](std::string_view message) {
    const std::string site = throw_site();
    return fmt::format("{}: {} threw: {}", site.empty() ? file.string() : site, what, message);
  };
  try {
    return function();
  } catch (const std::bad_alloc&) {
    throw;  // has an exit code of its own
  } catch (const ExitError& error) {
    throw ExitError(error.code(), text(error.what()));
  } catch (const std::exception& error) {
    throw Error(text(error.what()));
  } catch (...) {
    throw Error(text("something that is no std::exception"));
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Nothing of the library has run yet, not even its static initialisers.
void check_stamps(const fs::path& library, const SharedObject& object) {
  const std::string own_text = RHEA_PLUGIN_STAMP;
  const std::vector<std::string> own = lines_of(own_text);
  const auto mismatch = [&](std::string_view what, std::string_view found,
                            std::string_view needed) {
    throw Error(
        "{} was built against another Rhea: its {} is {}, that of this program is {}; rebuild the "
        "plugin against this Rhea",
        library.string(), what, found, needed);
  };
  for (const std::string& stamp : object.stamps) {
    if (stamp == own_text) continue;
    const std::vector<std::string> found = lines_of(stamp);
    if (found.size() != own.size() || found[0] != own[0])
      mismatch("plugin format", found.empty() ? "unknown" : found[0], own[0]);
    if (found[3] != own[3])
      throw Error(
          "{} was built by {}, this program by {}: their binary interfaces differ; rebuild the "
          "plugin with {} (RHEA_CXX chooses the compiler of sources)",
          library.string(), found[3], own[3], own[3]);
    if (found[1] != own[1]) mismatch("version", found[1], own[1]);
    mismatch("build", found[2], own[2]);
  }
}

void* open_library(const fs::path& file, const fs::path& library) {
  // dlopen() is declared not to throw, and yet what a static initialiser throws comes out of it.
  void* (*const volatile open)(const char*, int) = ::dlopen;
  // All symbols now: a missing one is an error here, not in the middle of a run.
  void* const handle = call_user(file, "a static initialiser",
                                 [&] { return open(library.c_str(), RTLD_NOW | RTLD_LOCAL); });
  if (handle != nullptr) return handle;
  const char* reason = ::dlerror();
  throw Error(
      "{} cannot be loaded: {}; link the plugin with what it uses beside Rhea (for a source: "
      "RHEA_CXXFLAGS=-l...)",
      library.string(), reason != nullptr ? reason : "unknown reason");
}

std::vector<config::ConfigEntry> read_configs(void* handle, const SharedObject& object,
                                              const fs::path& file) {
  std::vector<const ConfigEntry*> found;
  for (const std::string& symbol : object.symbols)
    if (symbol.starts_with(kConfigPrefix))
      found.push_back(static_cast<const ConfigEntry*>(::dlsym(handle, symbol.c_str())));
  std::ranges::sort(found, {}, &ConfigEntry::line);
  std::vector<config::ConfigEntry> configs;
  for (const ConfigEntry* entry : found)
    configs.push_back({entry->name, entry->help, [entry, file] {
                         return call_user(file, fmt::format("{}()", entry->name), entry->make);
                       }});
  return configs;
}

Module load(const fs::path& file) {
  Module module{file, is_source(file) ? compiled(file) : file, {}};
  const SharedObject object = read_shared_object(module.library);
  if (object.stamps.empty() && !is_source(file))
    throw Error(
        "{} is no plugin of Rhea: it has no stamp. Build it from files that include "
        "rhea/plugin/plugin.h and register with RHEA_CONFIG or RHEA_PLUGIN",
        file.string());
  check_stamps(module.library, object);
  watch_throws(module.library);
  void* const handle = open_library(file, module.library);
  ExitGuard::register_again();
  module.configs = read_configs(handle, object, file);
  if (void* const function = ::dlsym(handle, kPluginFunction)) {
    Plugin plugin(file.string());
    call_user(file, "RHEA_PLUGIN", [&] { reinterpret_cast<void (*)(Plugin&)>(function)(plugin); });
  } else if (module.configs.empty()) {
    throw Error(
        "{} registers nothing. Include \"rhea/plugin/plugin.h\" and write RHEA_CONFIG(my_run) "
        "after "
        "a function `rhea::TrainerConfig my_run()`, or RHEA_PLUGIN(p) {{ p.... }} for kernels, "
        "overrides and the like",
        file.string());
  }
  return module;
}

// "~/kernels" as a shell reads it, which does not see the one behind `--module=`.
std::string with_home(std::string_view name) {
  const std::string home = environment("HOME");
  if (!name.starts_with("~/") || home.empty()) return std::string(name);
  return home + std::string(name.substr(1));
}

// False where there is nothing of that name; throws Error where it is something else than a file.
bool is_file(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::regular) return true;
  // A folder of RHEA_PLUGIN_PATH that is closed to us has nothing for us.
  if (status.type() == fs::file_type::not_found || error == std::errc::permission_denied)
    return false;
  if (status.type() == fs::file_type::none)
    throw Error("module {} cannot be opened: {}", path.string(), error.message());
  throw Error("module {} is {}; a module is a file, NAME.cpp or NAME.so", path.string(),
              status.type() == fs::file_type::directory ? "a folder" : "no regular file");
}

std::vector<fs::path> search_folders() {
  std::vector<fs::path> folders = {fs::current_path()};
  std::istringstream path(environment("RHEA_PLUGIN_PATH"));
  for (std::string folder; std::getline(path, folder, ':');)
    if (!folder.empty()) folders.emplace_back(with_home(folder));
  return folders;
}

}  // namespace

std::optional<fs::path> find_module(std::string_view name) {
  const std::string path = with_home(name);
  std::vector<std::string> files = {path};
  if (!is_source(path) && fs::path(path).extension() != ".so")
    files = {path + ".cpp", path + ".so"};
  for (const fs::path& folder : search_folders()) {
    // An absolute path stays what it is.
    std::vector<fs::path> found;
    for (const std::string& file : files) {
      const fs::path candidate = fs::absolute(folder / file).lexically_normal();
      if (is_file(candidate)) found.push_back(candidate);
    }
    if (found.size() > 1)
      throw Error("module '{}' may be {} or {}; say which", name, found[0].string(),
                  found[1].string());
    if (!found.empty()) return found[0];
  }
  return std::nullopt;
}

const Module& load_module(const fs::path& file) {
  static std::mutex mutex;
  static auto& modules = *new std::map<fs::path, std::unique_ptr<Module>>;
  const std::lock_guard lock(mutex);
  std::error_code error;
  const fs::path real = fs::canonical(file, error);
  std::unique_ptr<Module>& module = modules[error ? file : real];
  if (!module) module = std::make_unique<Module>(load(fs::absolute(file)));
  return *module;
}

std::vector<config::ConfigEntry> find_runs(std::string_view name,
                                           const config::ConfigRegistry& registry) {
  const auto file = find_module(name);
  if (!file) {
    std::vector<std::string> folders;
    for (const fs::path& folder : search_folders()) folders.push_back(folder.string());
    std::error_code error;
    throw Error(
        "Cannot load module '{}'{}. For shorthands, supported modules are: [{}]; a file of that "
        "name "
        "(.cpp or .so) is in none of: {} (RHEA_PLUGIN_PATH adds folders)",
        name, fs::is_directory(with_home(name), error) ? ", which is a folder" : "",
        fmt::join(registry.modules(), ", "), fmt::join(folders, ", "));
  }
  const Module& module = load_module(*file);
  if (module.configs.empty())
    throw Error(
        "module {} has no config function: write RHEA_CONFIG(my_run) after a function "
        "`rhea::TrainerConfig my_run()`",
        file->string());
  return module.configs;
}

}  // namespace rhea::plugin
