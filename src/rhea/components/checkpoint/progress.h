// A log line every ten seconds of a long load or save.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace rhea::checkpoint {

// step() may be called from many threads.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  // `verb`: "Loaded", for "Loaded 3 of 10 tensors." `now`: what the time is, safe to call from
  // every thread.
  Progress(std::string verb, int64_t total, std::function<Clock::time_point()> now = Clock::now);
  void step();

 private:
  std::string verb_;
  int64_t total_;
  std::function<Clock::time_point()> now_;
  std::atomic<int64_t> done_{0};
  std::atomic<Clock::time_point> next_line_;
};

}  // namespace rhea::checkpoint
