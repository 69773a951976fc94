#include "rhea/plugin/exit_guard.h"

#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "rhea/base/error.h"
#include "rhea/base/status_line.h"
#include "rhea/plugin/throw_site.h"

namespace rhea::plugin {
namespace {

std::atomic<bool> armed = false;

void at_exit() {
  if (!armed.exchange(false)) return;
  log::clear_status();
  const std::string site = call_site();
  fmt::print(stderr,
             "rhea: error: {}: exit() was called before the command was done; return, or throw an "
             "Error, instead\n",
             site.empty() ? "a function of a plugin or of a library" : site);
  std::fflush(nullptr);
  ::_exit(static_cast<int>(ExitCode::user_error));
}

}  // namespace

ExitGuard::ExitGuard() {
  register_again();
  armed = true;
}

ExitGuard::~ExitGuard() { armed = false; }

void ExitGuard::register_again() {
  std::atexit(at_exit);
  std::at_quick_exit(at_exit);
}

}  // namespace rhea::plugin
