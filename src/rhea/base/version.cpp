// Version, git revision and compiler of this build.
#include "rhea/base/version.h"

#include <fmt/core.h>

#include "rhea/base/cpu_features.h"
#include "rhea_git_revision.h"

namespace rhea {

std::string_view version() { return RHEA_VERSION; }

std::string_view git_revision() { return RHEA_GIT_REVISION; }

std::string compiler() {
#if defined(__clang__)
  return fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

std::string version_line() {
  return fmt::format("{} ({}, {}, {})", version(), git_revision(), compiler(),
                     isa_name(active_isa()));
}

}  // namespace rhea
