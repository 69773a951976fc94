// One piece of work at a time on a thread of its own.
#pragma once
#include <atomic>
#include <exception>
#include <functional>
#include <thread>
#include <utility>

namespace rhea::checkpoint {

// Writing waits for the disk, not for a core, so it does not go through the pool of the step.
class BackgroundTask {
 public:
  ~BackgroundTask() {
    if (thread_.joinable()) thread_.join();
  }
  // Call only after wait().
  void start(std::function<void()> work) {
    done_ = false;
    thread_ = std::thread([this, work = std::move(work)] {
      try {
        work();
      } catch (...) {
        error_ = std::current_exception();
      }
      done_ = true;
    });
  }
  // True when wait() would return at once.
  bool done() const { return done_; }
  // Waits for the work and throws its error, once.
  void wait() {
    if (thread_.joinable()) thread_.join();
    if (const auto error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
  }

 private:
  std::thread thread_;
  std::atomic<bool> done_ = true;
  std::exception_ptr error_;
};

}  // namespace rhea::checkpoint
