#include "rhea/cli/run_logs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <utility>

#include "rhea/base/error.h"
#include "rhea/base/log.h"

namespace rhea::cli {
namespace {

namespace fs = std::filesystem;

void write_all(int to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(to, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // the console is gone; the file goes on
    text.remove_prefix(static_cast<size_t>(count));
  }
}

// Runs in the process that copies, until the last writer of `from` is gone.
[[noreturn]] void copy(int from, int file, int console, const std::string& prefix) {
  // It ends with the rank, not before: signals of the terminal reach both.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(signal, SIG_IGN);
  std::string line;
  std::array<char, 65536> block{};
  for (;;) {
    const ssize_t count = ::read(from, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    const std::string_view text(block.data(), static_cast<size_t>(count));
    write_all(file, text);
    for (const char c : text) {
      line += c;
      if (c != '\n') continue;
      write_all(console, prefix + line);
      line.clear();
    }
  }
  if (!line.empty()) write_all(console, prefix + line);
  ::_exit(0);
}

fs::path make_folder(const RunFlags& flags) {
  const fs::path base =
      flags.log_dir ? fs::path(*flags.log_dir) : fs::temp_directory_path() / "rhea_run";
  std::error_code error;
  fs::create_directories(base, error);
  std::string name = (base / (flags.run_id + "_")).string() + std::string(6, 'X');
  if (error || ::mkdtemp(name.data()) == nullptr)
    throw Error("rhea run: no folder for logs can be made in {}: {}; --log_dir names another",
                base.string(), error ? error.message() : std::strerror(errno));
  const fs::path folder = fs::path(name) / "attempt_0" / "0";
  fs::create_directories(folder);
  return folder;
}

void flush() {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
}

}  // namespace

std::string line_prefix(const RunFlags& flags) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  std::string text = flags.line_prefix;
  for (const auto& [macro, value] :
       {std::pair<std::string_view, std::string>{"${role_name}", flags.role},
        {"${local_rank}", "0"},
        {"${rank}", "0"},
        {"${hostname}", host.data()}})
    for (size_t at = text.find(macro); at != std::string::npos;
         at = text.find(macro, at + value.size()))
      text.replace(at, macro.size(), value);
  return text;
}

RankLogs::RankLogs(const RunFlags& flags) {
  if (!flags.redirects.any() && !flags.tee.any()) return;
  const fs::path folder = make_folder(flags);
  log::info("run", "Output of rank 0: {}", folder.string());
  const std::string prefix = line_prefix(flags);
  flush();
  if (flags.redirects.out || flags.tee.out)
    redirect(STDOUT_FILENO, folder / "stdout.log", flags.tee.out, prefix);
  if (flags.redirects.err || flags.tee.err)
    redirect(STDERR_FILENO, folder / "stderr.log", flags.tee.err, prefix);
}

void RankLogs::redirect(int number, const fs::path& path, bool tee, const std::string& prefix) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) throw Error("rhea run: {}: {}", path.string(), std::strerror(errno));
  Stream stream{.number = number};
  stream.console = ::fcntl(number, F_DUPFD_CLOEXEC, 3);
  int target = file;
  if (tee) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
      throw Error("rhea run: no pipe for --tee: {}", std::strerror(errno));
    stream.copier = ::fork();
    if (stream.copier < 0) throw Error("rhea run: no process for --tee: {}", std::strerror(errno));
    if (stream.copier == 0) {
      // The ends of other streams would keep their copiers alive.
      ::close(ends[1]);
      for (const Stream& other : streams_) ::dup2(other.console, other.number);
      copy(ends[0], file, stream.console, prefix);
    }
    ::close(ends[0]);
    target = ends[1];
  }
  ::dup2(target, number);
  ::close(target);
  if (tee) ::close(file);
  streams_.push_back(stream);
}

RankLogs::~RankLogs() {
  flush();
  for (const Stream& stream : streams_) {
    ::dup2(stream.console, stream.number);
    ::close(stream.console);
  }
  // The pipes have no writer any more, so the copiers end.
  for (const Stream& stream : streams_)
    while (stream.copier > 0 && ::waitpid(stream.copier, nullptr, 0) < 0 && errno == EINTR) {
    }
}

}  // namespace rhea::cli
