// The program `rhea`.
#include <fcntl.h>

#include <csignal>
#include <string>
#include <vector>

#include "rhea/cli/dispatch.h"
#include "rhea/plugin/exit_guard.h"

namespace {

// A closed standard stream would give its number to the next file that is opened, and log lines
// would land in that file. Opened the wrong way round, so that reading and writing fail as on a
// closed one.
void occupy_closed_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    // The lowest free number is this one.
    if (::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  // A file that may not grow (ulimit -f) is an error of its write, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  occupy_closed_streams();
  const std::vector<std::string> words(argv + 1, argv + argc);
  const rhea::plugin::ExitGuard guard;
  return rhea::cli::guarded([&] { return rhea::cli::dispatch(words); });
}
