// Folders that appear under their name whole, or not at all.
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace rhea {

// What may lie under the name of a new folder.
enum class Existing {
  replace,  // anything: the new folder takes its place in the same instant
  refuse    // nothing but an empty folder
};

// Makes folder `path`, and those above it: `fill` writes into a temporary folder beside it, which
// is then synced and renamed. When `fill` throws, the temporary is removed and nothing has changed.
// What a process of this host left there when it was killed is removed first. Throws Error where
// the place is taken (check_new_folder) and where the system refuses.
void make_folder(const std::filesystem::path& path,
                 const std::function<void(const std::filesystem::path& temporary)>& fill,
                 Existing existing);

// Removes a folder so that it is never seen half removed. Does not follow links. Throws
// filesystem_error.
void remove_folder(const std::filesystem::path& path);

// Absolute, without dots and the slash at its end, so that names can be made beside it.
std::filesystem::path folder_path(const std::filesystem::path& path);

// Throws Error when `path` is empty, is there and is no empty folder, when another process of this
// host is making it, or when nothing can be made at its place. Cheap: call it before the work.
void check_new_folder(const std::filesystem::path& path);

// The name of a temporary of this process beside `path`; `use` tells several apart ("old-", "hf-").
std::filesystem::path temporary_path(const std::filesystem::path& path, std::string_view use = "");

// A name that temporary_path gave.
struct Temporary {
  std::string of;  // the name beside which it lies
  bool is_of_this_host = false;
  bool is_in_use = false;  // by another process that lives, of this host
  int64_t process = 0;
};
std::optional<Temporary> parse_temporary(std::string_view name);

}  // namespace rhea
