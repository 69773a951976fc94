// Looks at the place of a new file.
#include "rhea/base/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "rhea/base/error.h"

namespace rhea {

void check_output_file(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const auto type = fs::status(path, ignored).type();
  if (path.empty() || type == fs::file_type::directory)
    throw Error("cannot write '{}': {}; give the name of a file", path.string(),
                path.empty() ? "the name is empty" : "it is a folder");
  if (type != fs::file_type::not_found && type != fs::file_type::regular &&
      type != fs::file_type::none)
    throw Error(
        "cannot write {}: it is a device, pipe or socket, and the result replaces what it is "
        "written to; give the name of a new file",
        path.string());
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, ignored))
    throw Error("cannot write {}: there is no folder {}; make it first", path.string(),
                folder.string());
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw Error("cannot write {}: no new file can be made in {}: {}", path.string(),
                folder.string(), std::strerror(errno));
}

void throw_file_error(const std::filesystem::path& path, const char* action) {
  const int code = errno;
  const std::string message =
      fmt::format("cannot {} {}: {}", action, path.string(), std::strerror(code));
  if (code == ENOSPC || code == EDQUOT || code == EFBIG)
    throw ExitError(ExitCode::out_of_memory, message);
  throw Error(message);
}

}  // namespace rhea
