// What this build is: version, git revision, compiler. A target of its own (rhea_version), so that
// a new commit relinks the program and nothing else.
#pragma once
#include <string>
#include <string_view>

namespace rhea {

// "0.1.0".
std::string_view version();
// Short hash of the commit that was built; "unknown" outside a git checkout.
std::string_view git_revision();
// E.g. "GCC 12.2.0".
std::string compiler();
// One line for logs: "0.1.0 (1a2b3c4d5e6f, GCC 12.2.0, avx512_bf16)".
std::string version_line();

}  // namespace rhea
