// Checks of a file before it is written.
#pragma once
#include <filesystem>

namespace rhea {

// Files are written under a temporary name and renamed, so that nobody sees half of one. Renaming
// over a device or a pipe would replace it, so that is refused; so is a folder, and a name in a
// folder that does not exist. Cheap: call it before the work whose result goes there.
void check_output_file(const std::filesystem::path& path);

}  // namespace rhea
