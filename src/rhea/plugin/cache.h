// Compiled plugins on disk. An entry is found by what went into it: the source, the headers of the
// user that it includes, Rhea's build, compiler and flags. Entries appear under their names only
// when they are whole, so that a process that dies while it compiles leaves nothing that another
// could take for one.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "rhea/plugin/toolchain.h"

namespace rhea::plugin {

// $RHEA_CACHE_DIR, else $XDG_CACHE_HOME/rhea, else ~/.cache/rhea.
std::filesystem::path cache_folder();

// The shared object of `source`, compiled where the cache has none. Of several processes one
// compiles and the others wait. The compiler's messages go to standard error as they are; Error
// then says what to do.
std::filesystem::path compiled(const std::filesystem::path& source);

// What `rhea cache list` shows of an entry.
struct CacheEntry {
  std::filesystem::path library;
  std::filesystem::path source;  // empty: left over, no start finds it any more
  std::uintmax_t bytes = 0;
  std::filesystem::file_time_type used;
};
// Newest first.
std::vector<CacheEntry> cache_entries();

struct Cleared {
  int64_t entries = 0;
  std::uintmax_t bytes = 0;
};
// Removes every entry, of older versions too, and what interrupted compiles left behind; nothing
// else in the folder, and nothing of a compile that is going on.
Cleared clear_cache();

}  // namespace rhea::plugin
