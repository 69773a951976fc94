// `rhea version`
#include "rhea/base/version.h"

#include <fmt/core.h>

#include "rhea/base/cpu_features.h"
#include "rhea/base/error.h"
#include "rhea/cli/commands.h"
#include "rhea/ops/onednn_version.h"

namespace rhea::cli {

int cmd_version(Args args) {
  if (!args.empty() && args[0] == "--help") {
    fmt::print(
        "usage: rhea version\n\nPrints version, git revision, compiler, CPU features in use and "
        "the oneDNN version.\n");
    return 0;
  }
  if (!args.empty()) throw Error("version takes no options, found '{}'", args[0]);
  fmt::print("rhea {}\nrevision: {}\ncompiler: {}\n", version(), git_revision(), compiler());
  fmt::print("cpu: {}, using {}\n", cpu_brand(), isa_in_use());
  fmt::print("oneDNN: {}\n", ops::onednn_version());
  return 0;
}

}  // namespace rhea::cli
