// The folder of compiled plugins as a list of files. Private to the cache.
//
// Layout of <cache>/plugins, with <key> = <name of the source>-<16 hex digits, of source, build and
// flags>:
//   <key>.record               what the entry was made from; renamed into place last
//   <key>-<16 hex digits>.so   the library; the digits are those of its content
//   <key>.lock                 held by the process that compiles
//   <key>.failed               what the compiler said when it refused the source
//   <key>.tmp.<6 letters>/     where a compiler writes; left behind only by a process that died
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "rhea/plugin/cache_entry.h"

namespace rhea::plugin {

std::filesystem::path plugins_folder();

struct CacheFile {
  enum class Kind { record, library, lock, failed, workshop } kind;
  std::string key;
};
// Nothing for files that are none of the cache's: they are left alone.
std::optional<CacheFile> as_cache_file(const std::filesystem::directory_entry& found);

// Nothing where the file is no whole record.
std::optional<CacheRecord> read_record(const std::filesystem::path& path);

// Keeps the folder from growing for ever: removes what was not used for kCacheDays.
inline constexpr int kCacheDays = 30;
void trim_cache();

}  // namespace rhea::plugin
