// Checks of a file before it is written.
#pragma once
#include <filesystem>

namespace rhea {

// Files are written under a temporary name and renamed, so that nobody sees half of one. Renaming
// over a device or a pipe would replace it, so that is refused; so is a folder, and a name in a
// folder that does not exist. Cheap: call it before the work whose result goes there.
void check_output_file(const std::filesystem::path& path);

// Throws "cannot <action> <path>: <reason>" of the error number that the system has just set. A
// full disk, quota or file size limit is ExitError with out_of_memory.
[[noreturn]] void throw_file_error(const std::filesystem::path& path, const char* action);

}  // namespace rhea
