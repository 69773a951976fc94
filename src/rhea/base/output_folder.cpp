// Folders are only ever renamed into and out of their name.
#include "rhea/base/output_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <vector>

#include "rhea/base/error.h"

namespace rhea {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = ".tmp-";
constexpr std::string_view kUses[] = {"old-", "hf-"};

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
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

fs::path parent_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

void make_directories(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder, error))
    throw Error("cannot make the folder {}: {}", folder.string(),
                error ? error.message() : "a file has its name");
}

// Calls f(path, what its name says) for every temporary of `path`.
template <class F>
void for_each_temporary(const fs::path& path, const F& f) {
  std::error_code absent;
  for (const auto& item : fs::directory_iterator(parent_of(path), absent)) {
    const auto found = parse_temporary(item.path().filename().native());
    if (found && found->of == path.filename().native()) f(item.path(), *found);
  }
}

[[noreturn]] void is_there_already(const fs::path& path) {
  throw Error("{} is there already; name a folder that does not exist yet", path.string());
}

void rename_into_place(const fs::path& temporary, const fs::path& path, Existing existing) {
  if (::rename(temporary.c_str(), path.c_str()) == 0) return;
  const int code = errno;
  if (code != ENOTEMPTY && code != EEXIST && code != ENOTDIR)
    throw Error("cannot rename {} to {}: {}", temporary.string(), path.filename().string(),
                std::strerror(code));
  if (existing == Existing::refuse) is_there_already(path);
  if (exchange(temporary, path)) return;
  remove_folder(path);
  fs::rename(temporary, path);
}

}  // namespace

fs::path folder_path(const fs::path& path) {
  const fs::path normal = fs::absolute(path).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

fs::path temporary_path(const fs::path& path, std::string_view use) {
  fs::path temporary = path;
  temporary += fmt::format("{}{}{}-{}", kMark, use, host_name(), ::getpid());
  return temporary;
}

std::optional<Temporary> parse_temporary(std::string_view name) {
  const size_t mark = name.rfind(kMark);
  const size_t dash = name.rfind('-');
  if (mark == std::string_view::npos || mark == 0 || dash < mark + kMark.size())
    return std::nullopt;
  int64_t process = 0;
  const std::string_view number = name.substr(dash + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), process);
  if (error != std::errc() || end != number.data() + number.size() || process <= 0)
    return std::nullopt;
  std::string_view host = name.substr(mark + kMark.size(), dash - mark - kMark.size());
  for (const std::string_view use : kUses)
    if (host.starts_with(use)) host.remove_prefix(use.size());
  Temporary found{.of = std::string(name.substr(0, mark)), .process = process};
  found.is_of_this_host = host == host_name();
  found.is_in_use = found.is_of_this_host && process != ::getpid() &&
                    (::kill(static_cast<pid_t>(process), 0) == 0 || errno != ESRCH);
  // A temporary may be made beside a temporary.
  if (auto outer = parse_temporary(found.of)) found.of = std::move(outer->of);
  return found;
}

void check_new_folder(const fs::path& path) {
  if (path.empty()) throw Error("the name of the folder to write is empty");
  const fs::path place = folder_path(path);
  std::error_code error;
  const auto type = fs::symlink_status(place, error).type();
  if (type != fs::file_type::not_found &&
      (type != fs::file_type::directory || !fs::is_empty(path, error) || error))
    is_there_already(path);
  for_each_temporary(place, [&](const fs::path& temporary, const Temporary& found) {
    if (found.is_in_use)
      throw Error("process {} is writing {} at this moment ({})", found.process, path.string(),
                  temporary.filename().string());
  });
  fs::path above = parent_of(place);
  while (!fs::exists(above, error) && above.has_relative_path()) above = above.parent_path();
  if (!fs::is_directory(above, error))
    throw Error("cannot make {}: {} is no folder", path.string(), above.string());
  if (::access(above.c_str(), W_OK | X_OK) != 0)
    throw Error("cannot make {}: nothing can be made in {}: {}", path.string(), above.string(),
                std::strerror(errno));
}

void make_folder(const fs::path& path, const std::function<void(const fs::path&)>& fill,
                 Existing existing) {
  if (existing == Existing::refuse) check_new_folder(path);
  make_directories(parent_of(path));
  std::vector<fs::path> left;
  for_each_temporary(path, [&](const fs::path& temporary, const Temporary& found) {
    // The folder being filled may be named as a temporary of this process itself.
    if (found.is_of_this_host && !found.is_in_use && found.process != ::getpid())
      left.push_back(temporary);
  });
  const fs::path temporary = temporary_path(path);
  left.push_back(temporary);
  std::error_code ignored;
  for (const fs::path& old : left) fs::remove_all(old, ignored);
  try {
    if (::mkdir(temporary.c_str(), 0777) != 0)
      throw Error("cannot make {} in {}: {}", path.filename().string(), parent_of(path).string(),
                  std::strerror(errno));
    fill(temporary);
    sync_folder(temporary);
    rename_into_place(temporary, path, existing);
    sync_folder(parent_of(path));
  } catch (...) {
    fs::remove_all(temporary, ignored);
    throw;
  }
  fs::remove_all(temporary);  // the folder that was replaced, if there was one
}

void remove_folder(const fs::path& path) {
  if (fs::is_symlink(path)) {
    fs::remove(path);
    return;
  }
  const fs::path temporary = temporary_path(path, "old-");
  fs::remove_all(temporary);
  fs::rename(path, temporary);
  fs::remove_all(temporary);
}

}  // namespace rhea
