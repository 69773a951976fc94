// What the address sanitizer cannot know by itself: all values of a program lie side by side in one
// mapping, so a kernel that leaves its buffers lands in another value and nothing is reported.
#pragma once
#include <cstddef>
#include <cstdint>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RHEA_FENCES 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define RHEA_FENCES 1
#endif

#if defined(RHEA_FENCES)
#include <sanitizer/asan_interface.h>
#endif

namespace rhea::exec::cpu {

#if defined(RHEA_FENCES)
inline constexpr bool kFences = true;
#else
inline constexpr bool kFences = false;
#endif

// While it lives, an access of instrumented code to the given memory ends the process with the
// sanitizer's report, outside of what was opened. Nothing in builds without the sanitizer.
class Fence {
 public:
  Fence(const std::byte* memory, int64_t bytes) : memory_(memory), bytes_(bytes) {
#if defined(RHEA_FENCES)
    __asan_poison_memory_region(memory_, static_cast<size_t>(bytes_));
#endif
  }
  ~Fence() { open(memory_, bytes_); }
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;

  void open([[maybe_unused]] const void* data, [[maybe_unused]] int64_t bytes) const {
#if defined(RHEA_FENCES)
    __asan_unpoison_memory_region(data, static_cast<size_t>(bytes));
#endif
  }

 private:
  const std::byte* memory_;
  int64_t bytes_;
};

}  // namespace rhea::exec::cpu
