// Failure of our own invariants.
#include "rhea/base/error.h"

#include <execinfo.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace rhea {

void check_failed(const char* condition, const std::string& message, std::source_location where) {
  std::fprintf(stderr, "internal check failed: %s\n  %s\n  at %s:%u\n", condition, message.c_str(),
               where.file_name(), static_cast<unsigned>(where.line()));
  void* frames[64];
  const int count = backtrace(frames, 64);
  backtrace_symbols_fd(frames, count, STDERR_FILENO);
  std::abort();
}

}  // namespace rhea
