// Folders are only ever renamed into and out of their name.
#include "rhea/components/checkpoint/step_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/checkpoint/manifest.h"
#include "rhea/components/safetensors/reader.h"

namespace rhea::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kTemporary = ".tmp-";

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || fmt::format("{}", value) != text)
    return std::nullopt;
  return value;
}

// 12 for "step-12"; names like "step-012" or "step-12-bak" are the user's own.
std::optional<int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  return number(name.substr(kPrefix.size()));
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

// `use` tells a folder that is being made ("") from one that is being removed ("old-").
fs::path temporary_of(const fs::path& path, std::string_view use = "") {
  fs::path temporary = path;
  temporary += fmt::format("{}{}{}-{}", kTemporary, use, host_name(), ::getpid());
  return temporary;
}

// True for "step-12.tmp-<host>-<pid>" unless that process lives on this host.
bool is_stale(std::string_view name) {
  const size_t mark = name.find(kTemporary);
  if (mark == std::string_view::npos || !step_of(name.substr(0, mark))) return false;
  const std::string_view id = name.substr(mark + kTemporary.size());
  const size_t dash = id.rfind('-');
  if (dash == std::string_view::npos || id.substr(0, dash) != host_name()) return true;
  const auto pid = number(id.substr(dash + 1));
  if (!pid || *pid == ::getpid()) return true;
  return ::kill(static_cast<pid_t>(*pid), 0) != 0 && errno == ESRCH;
}

void sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = fd >= 0 && ::fsync(fd) == 0;
  const int code = errno;
  if (fd >= 0) ::close(fd);
  if (!synced) throw Error("cannot sync {}: {}", folder.string(), std::strerror(code));
}

// Swaps two names in one instant; false where the file system cannot.
bool exchange(const fs::path& a, const fs::path& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

}  // namespace

StepFolder inspect_step_folder(const fs::path& path) {
  StepFolder found;
  found.path = path;
  const fs::path manifest_path = path / kManifestName;
  if (!fs::exists(manifest_path)) {
    found.content = safetensors::Weights::exist(path) ? StepFolder::Content::hf
                                                      : StepFolder::Content::incomplete;
    return found;
  }
  found.content = StepFolder::Content::damaged;
  try {
    const Manifest manifest =
        parse_manifest(MappedFile(manifest_path).text(), manifest_path.string());
    for (const auto& [name, size] : manifest.files) {
      const fs::path file = path / name;
      if (!fs::exists(file)) throw Error("{} is missing", file.string());
      if (const uint64_t have = fs::file_size(file); have != size)
        throw Error("{} has {} bytes, {} lists {}", file.string(), have, kManifestName, size);
    }
    found.step = manifest.step;
    found.content = manifest.kind == Manifest::Kind::full ? StepFolder::Content::full
                                                          : StepFolder::Content::model_only;
  } catch (const std::exception& error) {
    found.problem = error.what();
  }
  return found;
}

std::vector<StepFolder> list_step_folders(const fs::path& folder) {
  std::vector<StepFolder> found;
  std::error_code absent;
  for (const auto& item : fs::directory_iterator(folder, absent)) {
    const auto step = step_of(item.path().filename().native());
    if (!step || !item.is_directory()) continue;
    StepFolder step_folder = inspect_step_folder(item.path());
    const bool readable = step_folder.content == StepFolder::Content::full ||
                          step_folder.content == StepFolder::Content::model_only;
    if (readable && step_folder.step != *step) {
      step_folder.problem = fmt::format("{} says that it is step {}",
                                        (item.path() / kManifestName).string(), step_folder.step);
      step_folder.content = StepFolder::Content::damaged;
    }
    step_folder.step = *step;
    found.push_back(std::move(step_folder));
  }
  std::sort(found.begin(), found.end(),
            [](const StepFolder& a, const StepFolder& b) { return a.step < b.step; });
  return found;
}

void require_space(const fs::path& folder, uint64_t needed) {
  fs::path existing = folder;
  while (!fs::exists(existing) && existing.has_parent_path() && existing != existing.parent_path())
    existing = existing.parent_path();
  std::error_code unknown;
  const auto space = fs::space(existing.empty() ? "." : existing, unknown);
  if (unknown || space.available >= needed) return;
  throw ExitError(ExitCode::out_of_memory,
                  fmt::format("not enough disk space for {}: {} bytes needed, {} free; nothing was "
                              "written. Free space, lower "
                              "checkpoint.keep_latest_k, or put checkpoint.folder on another disk",
                              folder.string(), needed, space.available));
}

void make_step_folder(const fs::path& path, const std::function<void(const fs::path&)>& fill) {
  fs::create_directories(path.parent_path());
  const fs::path temporary = temporary_of(path);
  fs::remove_all(temporary);
  try {
    fs::create_directory(temporary);
    fill(temporary);
    sync_folder(temporary);
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
      const int code = errno;
      if (code != ENOTEMPTY && code != EEXIST && code != ENOTDIR)
        throw Error("cannot rename {} to {}: {}", temporary.string(), path.filename().string(),
                    std::strerror(code));
      if (!exchange(temporary, path)) {
        remove_step_folder(path);
        fs::rename(temporary, path);
      }
    }
    sync_folder(path.parent_path());
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    throw;
  }
  fs::remove_all(temporary);  // the folder that was replaced, if there was one
}

void remove_stale_temporaries(const fs::path& folder) {
  std::error_code absent;
  std::vector<fs::path> stale;
  for (const auto& item : fs::directory_iterator(folder, absent)) {
    if (is_stale(item.path().filename().native())) stale.push_back(item.path());
  }
  for (const fs::path& path : stale) {
    std::error_code error;
    fs::remove_all(path, error);
    if (error)
      log::warning("checkpoint", "cannot remove {}: {}", path.string(), error.message());
    else
      log::info("checkpoint", "Removed {}, which an interrupted save left.", path.string());
  }
}

void remove_step_folder(const fs::path& path) {
  if (fs::is_symlink(path)) {
    fs::remove(path);
    return;
  }
  const fs::path temporary = temporary_of(path, "old-");
  fs::remove_all(temporary);
  fs::rename(path, temporary);
  fs::remove_all(temporary);
}

}  // namespace rhea::checkpoint
