// From dataloader.dataset_path to the files that are read.
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rhea::data {

// `path` is a file, a folder (its files with one of the extensions, hidden ones left out) or a
// glob; sorted by name. Throws Error for no match, a path that is absent, the same file twice.
std::vector<std::filesystem::path> expand_path(const std::string& path,
                                               std::span<const std::string_view> extensions);

enum class Compression { none, gzip, zstd };
// By the first bytes of the file, not by its name.
Compression detect_compression(const std::filesystem::path& path);

}  // namespace rhea::data
