// Workers spin briefly for the next grid, then sleep; shares are contiguous so that a worker reads
// what it wrote.
#include "rhea/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "rhea/base/error.h"
#include "rhea/base/numa.h"

namespace rhea {

int num_available_cores() { return std::max(1, static_cast<int>(allowed_cpus().size())); }

struct ThreadPool::Impl {
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  // Number of the grid in the upper bits, kOpen while workers may join it, below that how many
  // work on it. The caller waits for those that joined and not for those that are still asleep, so
  // a late wake-up costs nothing but its help.
  static constexpr uint64_t kActive = 0xffff, kOpen = 0x10000, kGridShift = 17;

  int num_threads;
  std::vector<std::thread> workers;
  std::vector<Share> shares;
  const Body* body = nullptr;
  int64_t grain = 1;
  alignas(64) std::atomic<uint64_t> state{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable wake;
  std::exception_ptr failure;
  std::vector<size_t> node_of;

  // Where there are several NUMA nodes, each worker keeps to one, so that its scratch stays near.
  // Not worker 0: the caller's thread is not ours, and threads that it starts would inherit it.
  explicit Impl(int threads) : num_threads(threads), shares(static_cast<size_t>(threads)) {
    const std::vector<CpuNode> nodes = cpu_nodes(allowed_cpus());
    node_of = nodes_of_workers(num_threads, nodes);
    for (int w = 1; w < num_threads; ++w) {
      std::vector<int> cpus;
      if (!node_of.empty()) cpus = nodes[node_of[static_cast<size_t>(w)]].cpus;
      workers.emplace_back([this, w, cpus] {
        if (!cpus.empty()) keep_thread_on(cpus);
        loop(w);
      });
    }
  }

  ~Impl() {
    stop.store(true);
    publish(false);
    for (auto& worker : workers) worker.join();
  }

  // The next grid; the one before has no workers any more.
  void publish(bool open) {
    {
      const std::lock_guard lock(mutex);
      const uint64_t grid = (state.load(std::memory_order_relaxed) >> kGridShift) + 1;
      state.store(grid << kGridShift | (open ? kOpen : 0), std::memory_order_release);
    }
    wake.notify_all();
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
          for (Share& rest : shares) rest.next.store(rest.end, std::memory_order_relaxed);
        }
      }
    }
  }

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  // Waits for a grid other than `seen`: spins, then sleeps.
  uint64_t next_state(uint64_t seen) {
    constexpr int kSpins = 4000;
    uint64_t now = state.load(std::memory_order_acquire);
    for (int spins = 0; now >> kGridShift == seen && spins < kSpins; ++spins) {
      pause();
      now = state.load(std::memory_order_acquire);
    }
    if (now >> kGridShift != seen) return now;
    std::unique_lock lock(mutex);
    wake.wait(lock, [&] {
      now = state.load(std::memory_order_acquire);
      return now >> kGridShift != seen;
    });
    return now;
  }

  void loop(int worker) {
    uint64_t seen = 0;
    for (;;) {
      uint64_t now = next_state(seen);
      while ((now & kOpen) != 0 && !state.compare_exchange_weak(now, now + 1)) {
      }
      // After the exchange, which may have met the last grid of all instead of the one it wanted.
      if (stop.load()) return;
      seen = now >> kGridShift;
      if ((now & kOpen) == 0) continue;  // came too late
      work(worker);
      state.fetch_sub(1, std::memory_order_release);
    }
  }

  // Nobody joins from here on; returns when all who did have left.
  void close() {
    state.fetch_and(~kOpen);
    for (int spins = 0; (state.load(std::memory_order_acquire) & kActive) != 0; ++spins) {
      if (spins > 20000) std::this_thread::yield();
      pause();
    }
  }
};

ThreadPool::ThreadPool(int num_threads)
    : impl_(std::make_unique<Impl>(num_threads > 0 ? num_threads : num_available_cores())) {}
ThreadPool::~ThreadPool() = default;

int ThreadPool::num_threads() const { return impl_->num_threads; }
const std::vector<size_t>& ThreadPool::nodes() const { return impl_->node_of; }

ThreadPool::Share ThreadPool::share_of(int worker, int64_t count, int64_t grain) const {
  const int64_t threads = impl_->num_threads;
  if (threads == 1 || count <= grain) return worker == 0 ? Share{0, count} : Share{};
  const int64_t items = div_up(count, grain);
  return {items * worker / threads * grain,
          std::min(items * (worker + 1) / threads * grain, count)};
}

void ThreadPool::parallel_for(int64_t count, const Body& f, int64_t grain) {
  if (count <= 0) return;
  Impl& pool = *impl_;
  if (pool.num_threads == 1 || count <= grain) {
    for (int64_t begin = 0; begin < count; begin += grain)
      f(begin, std::min(begin + grain, count), 0);
    return;
  }
  RHEA_CHECK((pool.state.load() & Impl::kOpen) == 0, "parallel_for called from inside a grid item");
  pool.body = &f;
  pool.grain = grain;
  for (int w = 0; w < pool.num_threads; ++w) {
    const Share first = share_of(w, count, grain);
    auto& share = pool.shares[static_cast<size_t>(w)];
    share.next.store(first.begin, std::memory_order_relaxed);
    share.end = first.end;
  }
  pool.publish(true);
  pool.work(0);
  pool.close();
  if (pool.failure) std::rethrow_exception(std::exchange(pool.failure, nullptr));
}

}  // namespace rhea
