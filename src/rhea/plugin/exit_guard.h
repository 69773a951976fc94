// exit() in a function of a plugin would end a command in the middle with the exit code of its
// choice, and 0 looks like success.
#pragma once

namespace rhea::plugin {

// While one lives, exit() and quick_exit() end the process with the code of a user's error and a
// message that names the line.
class ExitGuard {
 public:
  ExitGuard();
  ~ExitGuard();
  ExitGuard(const ExitGuard&) = delete;
  ExitGuard& operator=(const ExitGuard&) = delete;

  // What a plugin registers to run at exit comes first otherwise, while its threads still run.
  static void register_again();
};

}  // namespace rhea::plugin
