// Workers spin briefly for the next grid, then sleep; shares are contiguous so that a worker reads
// what it wrote.
#include "rhea/base/thread_pool.h"

#include <sched.h>

#include <algorithm>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "rhea/base/error.h"

namespace rhea {

int num_available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  const int count = CPU_COUNT(&set);
  return count > 0 ? count : 1;
}

struct ThreadPool::Impl {
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  int num_threads;
  std::vector<std::thread> workers;
  std::vector<Share> shares;
  const Body* body = nullptr;
  int64_t grain = 1;
  alignas(64) std::atomic<uint64_t> generation{0};
  alignas(64) std::atomic<int> running{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable wake;
  std::exception_ptr failure;

  explicit Impl(int threads) : num_threads(threads), shares(static_cast<size_t>(threads)) {
    for (int w = 1; w < num_threads; ++w) workers.emplace_back([this, w] { loop(w); });
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stop.store(true);
      generation.fetch_add(1);
    }
    wake.notify_all();
    for (auto& worker : workers) worker.join();
  }

  void work(int worker) {
    for (int i = 0; i < num_threads; ++i) {
      Share& share = shares[static_cast<size_t>((worker + i) % num_threads)];
      for (;;) {
        const int64_t begin = share.next.fetch_add(grain, std::memory_order_relaxed);
        if (begin >= share.end) break;
        try {
          (*body)(begin, std::min(begin + grain, share.end), worker);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!failure) failure = std::current_exception();
        }
      }
    }
  }

  void loop(int worker) {
    uint64_t seen = 0;
    for (;;) {
      constexpr int kSpins = 4000;
      int spins = 0;
      while (generation.load(std::memory_order_acquire) == seen && spins < kSpins) {
        ++spins;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
      if (generation.load(std::memory_order_acquire) == seen) {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return generation.load(std::memory_order_acquire) != seen; });
      }
      seen = generation.load(std::memory_order_acquire);
      if (stop.load()) return;
      work(worker);
      running.fetch_sub(1, std::memory_order_release);
    }
  }
};

ThreadPool::ThreadPool(int num_threads)
    : impl_(std::make_unique<Impl>(num_threads > 0 ? num_threads : num_available_cores())) {}
ThreadPool::~ThreadPool() = default;

int ThreadPool::num_threads() const { return impl_->num_threads; }

void ThreadPool::parallel_for(int64_t count, const Body& f, int64_t grain) {
  if (count <= 0) return;
  Impl& pool = *impl_;
  if (pool.num_threads == 1 || count <= grain) {
    for (int64_t begin = 0; begin < count; begin += grain)
      f(begin, std::min(begin + grain, count), 0);
    return;
  }
  RHEA_CHECK(pool.running.load() == 0, "parallel_for called from inside a grid item");
  pool.body = &f;
  pool.grain = grain;
  const int64_t items = div_up(count, grain);
  for (int w = 0; w < pool.num_threads; ++w) {
    auto& share = pool.shares[static_cast<size_t>(w)];
    share.next.store(items * w / pool.num_threads * grain, std::memory_order_relaxed);
    share.end = std::min(items * (w + 1) / pool.num_threads * grain, count);
  }
  pool.running.store(pool.num_threads - 1, std::memory_order_relaxed);
  {
    const std::lock_guard lock(pool.mutex);
    pool.generation.fetch_add(1, std::memory_order_release);
  }
  pool.wake.notify_all();
  pool.work(0);
  int spins = 0;
  while (pool.running.load(std::memory_order_acquire) != 0) {
    if (++spins > 20000) std::this_thread::yield();
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  if (pool.failure) std::rethrow_exception(std::exchange(pool.failure, nullptr));
}

}  // namespace rhea
