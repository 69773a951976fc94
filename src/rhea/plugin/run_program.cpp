#include "rhea/plugin/run_program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "rhea/base/error.h"

extern char** environ;

namespace rhea::plugin {
namespace {

bool is_executable(const std::filesystem::path& file) {
  std::error_code error;
  return std::filesystem::is_regular_file(file, error) && ::access(file.c_str(), X_OK) == 0;
}

// Starts the program with its streams on `output`; an errno or 0.
int start(char* const argv[], int output, pid_t& child) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  const int error = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

// What the watcher process does: starts the program in a process group, which a compiler's own
// children belong to, and kills the group when `parent` is gone. Its exit code is the program's.
// Only system calls: the process it was forked from may have had threads.
[[noreturn]] void watch(char* const argv[], int output, pid_t parent) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  sigaddset(&signals, SIGTERM);
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::close(STDIN_FILENO);
  ::open("/dev/null", O_RDONLY);             // the lowest free number
  ::close_range(STDERR_FILENO + 1, ~0U, 0);  // locks, too, which end with the last that has them
  const pid_t program = ::fork();
  if (program == 0) {
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    ::execvp(argv[0], argv);
    ::_exit(127);
  }
  if (program < 0) ::_exit(126);
  for (;;) {
    if (::sigwaitinfo(&signals, nullptr) == SIGTERM) ::kill(0, SIGKILL);
    int status = 0;
    if (::waitpid(program, &status, WNOHANG) == program)
      ::_exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
  }
}

int start_watched(char* const argv[], int output, pid_t& child) {
  const pid_t parent = ::getpid();
  child = ::fork();
  if (child == 0) watch(argv, output, parent);
  return child < 0 ? errno : 0;
}

}  // namespace

ProgramResult run_program(const std::vector<std::string>& words, Lifetime lifetime) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error("cannot run {}: {}", words.front(), std::strerror(errno));
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = -1;
  const int error = lifetime == Lifetime::ours ? start_watched(argv.data(), ends[1], child)
                                               : start(argv.data(), ends[1], child);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    throw Error("cannot run {}: {}", words.front(), std::strerror(error));
  }

  ProgramResult result;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t got = ::read(ends[0], part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    result.output.append(part.data(), static_cast<size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw Error("cannot wait for {}: {}", words.front(), std::strerror(errno));
  result.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

std::optional<std::filesystem::path> find_program(std::string_view name) {
  if (name.find('/') != std::string_view::npos) {
    if (is_executable(name)) return std::filesystem::path(name);
    return std::nullopt;
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::filesystem::path candidate =
        std::filesystem::path(folder.empty() ? "." : folder) / name;
    if (is_executable(candidate)) return candidate;
  }
  return std::nullopt;
}

}  // namespace rhea::plugin
