// A log line every ten seconds of a long load or save.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace rhea::checkpoint {

// step() may be called from many threads.
class Progress {
 public:
  // `verb`: "Loaded", for "Loaded 3 of 10 tensors."
  Progress(std::string verb, int64_t total) : verb_(std::move(verb)), total_(total) {}
  void step();

 private:
  using Clock = std::chrono::steady_clock;
  static int64_t now() { return Clock::now().time_since_epoch().count(); }

  static constexpr int64_t kInterval =
      std::chrono::duration_cast<Clock::duration>(std::chrono::seconds(10)).count();
  std::string verb_;
  int64_t total_;
  std::atomic<int64_t> done_{0};
  std::atomic<int64_t> next_line_{now() + kInterval};
};

}  // namespace rhea::checkpoint
