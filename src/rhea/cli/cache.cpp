// `rhea cache`: the plugins that were compiled.
#include <fmt/ranges.h>

#include "rhea/base/error.h"
#include "rhea/base/text.h"
#include "rhea/cli/commands.h"
#include "rhea/plugin/cache.h"

namespace rhea::cli {
namespace {

constexpr const char* kUsage =
    "usage: rhea cache list    compiled plugins: size, source, file; the last used first\n"
    "       rhea cache clear   removes them; they are compiled again when they are needed\n"
    "\n"
    "The folder is $RHEA_CACHE_DIR, else $XDG_CACHE_HOME/rhea, else ~/.cache/rhea.\n";

int list() {
  std::uintmax_t bytes = 0;
  const auto entries = plugin::cache_entries();
  for (const plugin::CacheEntry& entry : entries) {
    fmt::print("{:>10} KB  {}  {}\n", with_commas(static_cast<int64_t>(entry.bytes / 1024)),
               entry.source.empty() ? "(left over)" : entry.source.string(),
               entry.library.filename().string());
    bytes += entry.bytes;
  }
  fmt::print("{} compiled plugin(s), {} KB, in {}\n", entries.size(),
             with_commas(static_cast<int64_t>(bytes / 1024)), plugin::cache_folder().string());
  return 0;
}

int clear() {
  const plugin::Cleared cleared = plugin::clear_cache();
  fmt::print("removed {} compiled plugin(s), {} KB, from {}\n", cleared.entries,
             with_commas(static_cast<int64_t>(cleared.bytes / 1024)),
             plugin::cache_folder().string());
  return 0;
}

}  // namespace

int cmd_cache(Args args) {
  if (args.size() == 1 && (args[0] == "--help" || args[0] == "-h")) {
    fmt::print("{}", kUsage);
    return 0;
  }
  if (args.size() == 1 && args[0] == "list") return list();
  if (args.size() == 1 && args[0] == "clear") return clear();
  throw Error("rhea cache: expected one word, `list` or `clear`, got {}",
              args.empty() ? "none" : fmt::format("'{}'", fmt::join(args, " ")));
}

}  // namespace rhea::cli
