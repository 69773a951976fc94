#include "rhea/components/checkpoint/progress.h"

#include "rhea/base/log.h"

namespace rhea::checkpoint {
namespace {

constexpr std::chrono::seconds kInterval{10};

}  // namespace

Progress::Progress(std::string verb, int64_t total, std::function<Clock::time_point()> now)
    : verb_(std::move(verb)), total_(total), now_(std::move(now)), next_line_(now_() + kInterval) {}

void Progress::step() {
  const int64_t done = done_.fetch_add(1) + 1;
  const Clock::time_point time = now_();
  // Of threads that find the line due at once, one writes it.
  Clock::time_point due = next_line_.load();
  if (time < due || !next_line_.compare_exchange_strong(due, time + kInterval)) return;
  log::info("checkpoint", "{} {} of {} tensors.", verb_, done, total_);
}

}  // namespace rhea::checkpoint
