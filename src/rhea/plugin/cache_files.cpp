#include "rhea/plugin/cache_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <string_view>
#include <vector>

#include "rhea/base/error.h"
#include "rhea/base/mapped_file.h"
#include "rhea/plugin/cache.h"

namespace rhea::plugin {
namespace {

namespace fs = std::filesystem;
using Kind = CacheFile::Kind;

// Takes "-" and 16 hex digits off the end.
bool take_digits(std::string_view& name) {
  constexpr size_t kDigits = 16;
  if (name.size() <= kDigits + 1 || name[name.size() - kDigits - 1] != '-') return false;
  const std::string_view digits = name.substr(name.size() - kDigits);
  if (digits.find_first_not_of("0123456789abcdef") != std::string_view::npos) return false;
  name.remove_suffix(kDigits + 1);
  return true;
}

bool is_key(std::string_view name) { return take_digits(name); }

// A process compiles it right now.
bool is_locked(const std::string& key) {
  const int fd = ::open((plugins_folder() / (key + ".lock")).c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  const bool locked = ::flock(fd, LOCK_EX | LOCK_NB) != 0;
  ::close(fd);
  return locked;
}

// Removes the cache's own files that `doomed` names.
Cleared remove_files(
    const std::function<bool(const fs::directory_entry&, const CacheFile&)>& doomed) {
  Cleared cleared;
  std::error_code error;
  for (const fs::directory_entry& found : fs::directory_iterator(plugins_folder(), error)) {
    const auto file = as_cache_file(found);
    if (!file || !doomed(found, *file) || is_locked(file->key)) continue;
    const bool is_library = file->kind == Kind::library;
    const std::uintmax_t bytes = is_library ? fs::file_size(found.path(), error) : 0;
    if (fs::remove_all(found.path(), error) == 0 || error || !is_library) continue;
    ++cleared.entries;
    cleared.bytes += bytes;
  }
  return cleared;
}

}  // namespace

fs::path plugins_folder() { return cache_folder() / "plugins"; }

std::optional<CacheFile> as_cache_file(const fs::directory_entry& found) {
  const std::string name = found.path().filename().string();
  const fs::path extension = found.path().extension();
  std::string_view stem = std::string_view(name).substr(0, name.size() - extension.string().size());
  const auto made = [](Kind kind, std::string_view key) -> std::optional<CacheFile> {
    if (!is_key(key)) return std::nullopt;
    return CacheFile{kind, std::string(key)};
  };
  if (found.is_symlink()) return std::nullopt;
  if (found.is_directory()) {
    if (!stem.ends_with(".tmp")) return std::nullopt;
    stem.remove_suffix(4);
    return made(Kind::workshop, stem);
  }
  if (extension == ".record") return made(Kind::record, stem);
  if (extension == ".lock") return made(Kind::lock, stem);
  if (extension == ".failed") return made(Kind::failed, stem);
  if (extension == ".so" && take_digits(stem)) return made(Kind::library, stem);
  return std::nullopt;
}

std::optional<CacheRecord> read_record(const fs::path& path) {
  try {
    return parse_record(read_file(path));
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<CacheEntry> cache_entries() {
  std::vector<CacheEntry> entries;
  std::set<fs::path> recorded;
  std::error_code error;
  const auto add = [&](const fs::path& library, const fs::path& source, const fs::path& used) {
    const std::uintmax_t bytes = fs::file_size(library, error);
    if (!error) entries.push_back({library, source, bytes, fs::last_write_time(used, error)});
  };
  std::vector<fs::path> libraries;
  for (const fs::directory_entry& found : fs::directory_iterator(plugins_folder(), error)) {
    const auto file = as_cache_file(found);
    if (file && file->kind == Kind::library) libraries.push_back(found.path());
    if (!file || file->kind != Kind::record) continue;
    const auto record = read_record(found.path());
    if (!record) continue;
    const fs::path library = plugins_folder() / record->library;
    recorded.insert(library);
    add(library, record->source, found.path());
  }
  for (const fs::path& library : libraries)
    if (!recorded.contains(library)) add(library, {}, library);
  std::ranges::sort(entries, std::greater{}, &CacheEntry::used);
  return entries;
}

Cleared clear_cache() {
  return remove_files([](const fs::directory_entry&, const CacheFile&) { return true; });
}

void trim_cache() {
  const auto oldest = fs::file_time_type::clock::now() - std::chrono::hours(24 * kCacheDays);
  std::set<std::string> in_use;  // a library is as old as its record says
  for (const CacheEntry& entry : cache_entries())
    if (entry.used >= oldest) in_use.insert(entry.library.filename().string());
  remove_files([&](const fs::directory_entry& found, const CacheFile& file) {
    if (file.kind == Kind::library) return !in_use.contains(found.path().filename().string());
    std::error_code error;
    return found.last_write_time(error) < oldest && !error;
  });
}

}  // namespace rhea::plugin
