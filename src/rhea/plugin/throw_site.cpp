// Interposes __cxa_throw: this library comes before libstdc++ in the search order of the dynamic
// linker.
#include "rhea/plugin/throw_site.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "rhea/base/error.h"
#include "rhea/plugin/run_program.h"
#include "rhea/plugin/toolchain.h"

namespace rhea::plugin {
namespace {

struct Throw {
  const void* exception = nullptr;
  std::array<void*, 64> frames{};
  int num_frames = 0;
};

// The last throws of all threads: an exception may be reported by another thread than the one that
// threw it, and after others that were caught.
struct Watch {
  std::atomic<bool> on = false;
  std::mutex mutex;
  std::vector<std::string> libraries;
  std::array<Throw, 16> last;
  size_t next = 0;
};

Watch& watch() {
  static Watch* const made = new Watch;  // threads may throw while the process ends
  return *made;
}

void remember(const void* exception) {
  Throw now;
  now.exception = exception;
  now.num_frames = ::backtrace(now.frames.data(), static_cast<int>(now.frames.size()));
  const std::lock_guard lock(watch().mutex);
  watch().last[watch().next++ % watch().last.size()] = now;
}

// The exception that is being handled and those nested in it, the innermost first.
std::vector<std::exception_ptr> current_exceptions() {
  std::vector<std::exception_ptr> all;
  for (std::exception_ptr next = std::current_exception(); next != nullptr;) {
    all.insert(all.begin(), next);
    try {
      std::rethrow_exception(std::exchange(next, nullptr));
    } catch (const std::nested_exception& outer) {
      next = outer.nested_ptr();
    } catch (...) {
      break;
    }
  }
  return all;
}

// The exception object, as __cxa_throw got it.
const void* object_of(const std::exception_ptr& exception) {
  const void* object = nullptr;
  std::memcpy(&object, &exception, sizeof object);  // an exception_ptr is that pointer
  return object;
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

bool is_users(const std::string& file) {
  if (file.empty() || file.starts_with("?") || file.starts_with("/usr/")) return false;
  return std::ranges::none_of(header_folders(), [&](const std::filesystem::path& folder) {
    return file.starts_with((folder / "rhea").string() + "/");
  });
}

// addr2line prints two lines a frame, the innermost of the inlined ones first: function, file:line.
std::string line_of(const std::string& library, uintptr_t offset) {
  const ProgramResult result =
      run_program({"addr2line", "-Cfie", library, fmt::format("{:#x}", offset)});
  if (result.status != 0) return "";
  std::istringstream lines(result.output);
  for (std::string function, place; std::getline(lines, function) && std::getline(lines, place);) {
    place = place.substr(0, place.find(" (discriminator"));
    const size_t colon = place.rfind(':');
    if (colon == std::string::npos || place.substr(colon + 1) == "?") continue;
    if (is_users(place.substr(0, colon))) return place;
  }
  return "";
}

// The function of a plugin at the address, if it is in one.
std::optional<Dl_info> plugin_function(void* address) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return std::nullopt;
  if (std::ranges::find(watch().libraries, info.dli_fname) == watch().libraries.end())
    return std::nullopt;
  return info;
}

// The innermost line that the user wrote; templates of our headers, which are compiled into a
// plugin, have none. Names of functions where there is no table of lines or no addr2line.
std::string site_of(const Throw& one) {
  std::string name;
  for (int i = 0; i < one.num_frames; ++i) {
    void* const address = one.frames[static_cast<size_t>(i)];
    const auto info = plugin_function(address);
    if (!info) continue;
    // The address is that of the next instruction, which may belong to the next line.
    const auto offset =
        reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(info->dli_fbase) - 1;
    try {
      if (std::string line = line_of(info->dli_fname, offset); !line.empty()) return line;
    } catch (const Error&) {
      // No addr2line.
    }
    if (name.empty() && info->dli_sname != nullptr)
      name = fmt::format("{} in {}", demangled(info->dli_sname), info->dli_fname);
  }
  return name;
}

// Of the last throw of this object.
std::string site_of(const std::exception_ptr& exception) {
  const void* const object = object_of(exception);
  for (size_t back = 1; back <= watch().last.size(); ++back) {
    const Throw& one = watch().last[(watch().next - back) % watch().last.size()];
    if (one.exception == object) return site_of(one);
  }
  return "";
}

}  // namespace

void watch_throws(const std::filesystem::path& library) {
  const std::lock_guard lock(watch().mutex);
  watch().libraries.push_back(library.string());
  watch().on = true;
}

std::string throw_site() {
  if (!watch().on) return "";
  const std::vector<std::exception_ptr> exceptions = current_exceptions();
  const std::lock_guard lock(watch().mutex);
  for (const std::exception_ptr& exception : exceptions)
    if (std::string site = site_of(exception); !site.empty()) return site;
  return "";
}

std::string call_site() {
  if (!watch().on) return "";
  Throw now;
  now.num_frames = ::backtrace(now.frames.data(), static_cast<int>(now.frames.size()));
  const std::lock_guard lock(watch().mutex);
  return site_of(now);
}

std::string with_throw_site(const std::exception& error) {
  const std::string site = throw_site();
  return site.empty() ? error.what() : fmt::format("{}\n  thrown at {}", error.what(), site);
}

}  // namespace rhea::plugin

#if defined(__clang__)
using ThrownType = std::type_info;  // as <cxxabi.h> declares the function
#else
using ThrownType = void;  // as GCC has it built in
#endif
extern "C" [[gnu::noreturn, gnu::visibility("default")]] void __cxa_throw(void* exception,
                                                                          ThrownType* type,
                                                                          void (*destroy)(void*)) {
  using Function = void (*)(void*, ThrownType*, void (*)(void*));
  static const auto next = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "__cxa_throw"));
  if (rhea::plugin::watch().on) rhea::plugin::remember(exception);
  next(exception, type, destroy);
  __builtin_unreachable();
}
