// fork and exec; nothing but async-signal-safe calls in between.
#include "tests/support/process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

extern char** environ;

namespace rhea::support {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

Process::Process(const std::vector<std::string>& words, std::filesystem::path log,
                 const Options& options)
    : log_(std::move(log)) {
  std::vector<std::string> arguments = {RHEA_PROGRAM};
  arguments.insert(arguments.end(), words.begin(), words.end());
  std::vector<std::string> environment;
  for (const auto& [name, value] : options.environment) environment.push_back(name + "=" + value);
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  const auto argv = pointers(arguments);
  const auto envp = pointers(environment);
  const int fd = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) throw std::runtime_error("cannot open " + log_.string());
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(fd, STDOUT_FILENO);
    ::dup2(fd, STDERR_FILENO);
    if (options.max_file_bytes) {
      const rlimit limit{*options.max_file_bytes, *options.max_file_bytes};
      ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    for (const int stream : options.closed) ::close(stream);
    if (options.max_address_bytes) {
      const rlimit limit{*options.max_address_bytes, *options.max_address_bytes};
      ::setrlimit(RLIMIT_AS, &limit);
    }
    if (!options.working_folder.empty() && ::chdir(options.working_folder.c_str()) != 0)
      ::_exit(126);
    ::execve(RHEA_PROGRAM, argv.data(), envp.data());
    ::_exit(127);
  }
  ::close(fd);
  if (pid_ < 0) throw std::runtime_error("cannot fork");
}

Process::~Process() {
  if (!running()) return;
  signal(SIGKILL);
  collect(0);
}

bool Process::collect(int options) {
  int status = 0;
  rusage usage{};
  if (::wait4(pid_, &status, options, &usage) != pid_) return false;
  status_ = status;
  peak_bytes_ = static_cast<int64_t>(usage.ru_maxrss) * 1024;
  return true;
}

void Process::signal(int number) const {
  if (!status_) ::kill(pid_, number);
}

bool Process::running() { return !status_ && !collect(WNOHANG); }

int Process::wait(double seconds) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  while (running()) {
    if (Clock::now() > deadline) {
      signal(SIGKILL);
      collect(0);
      return 124;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return WIFSIGNALED(*status_) ? 128 + WTERMSIG(*status_) : WEXITSTATUS(*status_);
}

bool Process::wait_for(const std::string& text, double seconds) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < deadline) {
    const bool ended = !running();  // asked first: what it wrote before its end counts
    if (output().find(text) != std::string::npos) return true;
    if (ended) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

std::string Process::output() const {
  std::ostringstream text;
  text << std::ifstream(log_).rdbuf();
  return text.str();
}

}  // namespace rhea::support
