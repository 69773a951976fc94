// Folders and globs to sorted lists of files.
#include "rhea/components/data/input_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <glob.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "rhea/base/error.h"

namespace rhea::data {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> glob_files(const std::string& pattern) {
  glob_t found{};
  const int rc = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<fs::path> files;
  for (size_t i = 0; rc == 0 && i < found.gl_pathc; ++i)
    if (fs::is_regular_file(found.gl_pathv[i])) files.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (files.empty()) throw Error("dataloader.dataset_path = {}: no file matches", pattern);
  return files;
}

std::vector<fs::path> folder_files(const fs::path& folder,
                                   std::span<const std::string_view> extensions) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool wanted =
        std::any_of(extensions.begin(), extensions.end(),
                    [&](std::string_view extension) { return name.ends_with(extension); });
    if (wanted && !name.starts_with('.') && entry.is_regular_file()) files.push_back(entry.path());
  }
  if (files.empty())
    throw Error("dataloader.dataset_path = {}: the folder has no file that ends in {}",
                folder.string(), fmt::join(extensions, ", "));
  return files;
}

}  // namespace

std::vector<fs::path> expand_path(const std::string& path,
                                  std::span<const std::string_view> extensions) {
  std::vector<fs::path> files;
  if (fs::is_regular_file(path)) {
    files.emplace_back(path);
  } else if (fs::is_directory(path)) {
    files = folder_files(path, extensions);
  } else if (path.find_first_of("*?[") != std::string::npos) {
    files = glob_files(path);
  } else {
    throw Error("dataloader.dataset_path = {}: no such file or folder", path);
  }
  std::sort(files.begin(), files.end());
  std::set<fs::path> seen;
  for (const fs::path& file : files)
    if (!seen.insert(fs::canonical(file)).second)
      throw Error("dataloader.dataset_path = {}: {} leads to a file that is in the list already",
                  path, file.string());
  return files;
}

Compression detect_compression(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error("cannot open {} for reading", path.string());
  char begin[4] = {};
  file.read(begin, sizeof begin);
  const std::string_view magic(begin, static_cast<size_t>(file.gcount()));
  if (magic.starts_with("\x1f\x8b")) return Compression::gzip;
  if (magic == "\x28\xb5\x2f\xfd") return Compression::zstd;
  return Compression::none;
}

}  // namespace rhea::data
