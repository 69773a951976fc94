// The record beside a compiled plugin: what it was made from. Private to the cache.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rhea::plugin {

struct CacheRecord {
  std::filesystem::path source;
  std::filesystem::path library;  // its file name
  std::string library_hash;
  struct File {
    std::filesystem::path path;
    std::string hash;
  };
  std::vector<File> files;  // the source and every header of the user that it includes

  std::string text() const;
};

// Nothing where the text is no whole record.
std::optional<CacheRecord> parse_record(std::string_view text);

// The files that a dependency file of the compiler names, without the target.
std::vector<std::filesystem::path> parse_dependencies(std::string_view makefile);

// SHA-256 of a file, "" where it cannot be read.
std::string file_hash(const std::filesystem::path& path);

}  // namespace rhea::plugin
