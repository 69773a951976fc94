// The built `rhea` program as a process that a test can watch, signal and kill.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rhea::support {

class Process {
 public:
  struct Options {
    std::vector<std::pair<std::string, std::string>> environment = {};  // set on top of the test's
    std::optional<uint64_t> max_file_bytes = {};     // RLIMIT_FSIZE: stands in for a full disk
    std::optional<uint64_t> max_address_bytes = {};  // RLIMIT_AS, as `ulimit -v` sets it
    std::filesystem::path working_folder = {};       // where it is started; empty: the test's own
    std::vector<int> closed = {};                    // standard streams that it starts without
  };

  // Starts `rhea <words>`; both of its streams go to `log`.
  Process(const std::vector<std::string>& words, std::filesystem::path log, const Options& options);
  Process(const std::vector<std::string>& words, std::filesystem::path log)
      : Process(words, std::move(log), Options{}) {}
  // Kills it if it still runs.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const;
  bool running();
  // Exit code, or 128 + the signal that ended it; 124 when it had to be killed after `seconds`.
  int wait(double seconds = 120);
  // Waits until its output holds `text`; false when it ends before or does not come in time.
  bool wait_for(const std::string& text, double seconds = 60);
  std::string output() const;
  // Most memory that it had in its pages at a time, once it has ended. Not less than what the
  // test's own process had when it started it.
  int64_t peak_bytes() const { return peak_bytes_; }

 private:
  // False while it runs, if `options` says not to wait.
  bool collect(int options);

  pid_t pid_ = -1;
  std::optional<int> status_;
  int64_t peak_bytes_ = 0;
  std::filesystem::path log_;
};

}  // namespace rhea::support
