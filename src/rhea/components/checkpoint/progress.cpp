#include "rhea/components/checkpoint/progress.h"

#include "rhea/base/log.h"

namespace rhea::checkpoint {

void Progress::step() {
  const int64_t done = done_.fetch_add(1) + 1;
  int64_t due = next_line_.load();
  const int64_t time = now();
  if (time < due || !next_line_.compare_exchange_strong(due, time + kInterval)) return;
  log::info("checkpoint", "{} {} of {} tensors.", verb_, done, total_);
}

}  // namespace rhea::checkpoint
