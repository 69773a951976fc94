// Signals that ask a run to end: remembered by the handler, polled by the trainer at step
// boundaries.
#pragma once
#include <chrono>
#include <optional>
#include <string_view>

namespace rhea::signals {

// Handlers of SIGTERM, SIGUSR1 and SIGINT while the object lives (make it first thing in `train`,
// so that a signal during start-up is not lost). The first signal is remembered; more of them
// change nothing, so a save in progress is always completed; only the second SIGINT ends the
// process at once (exit code 130). SIGXFSZ and SIGPIPE are ignored: a file that may not grow and a
// closed pipe become errors of the write, which can be reported. One object per process.
class StopSignals {
 public:
  StopSignals();
  // Puts the previous handlers back; after a stop was asked for, further stop signals are ignored.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
};

// Number of the first signal that StopSignals caught, 0 for none. Cheap: one atomic load.
int received();
// "SIGTERM", "SIGUSR1", "SIGINT".
std::string_view signal_name(int signal);

// What the trainer asks between two steps.
class StopRequest {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Cause { none, signal, wall_time };

  // `start` is when the run began; the limit counts from there.
  explicit StopRequest(std::optional<std::chrono::seconds> max_wall_time = std::nullopt,
                       Clock::time_point start = Clock::now());
  // Once not none, it stays what it was.
  Cause poll();

 private:
  std::optional<Clock::time_point> deadline_;
  Cause cause_ = Cause::none;
};

}  // namespace rhea::signals
