// The one thread runtime of the process: a fixed set of workers over grids of independent items.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace rhea {

// `num_threads` workers, the calling thread being worker 0. Work is a grid of `count` items that do
// not depend on each other and on who runs them; so results have the same bits for any number of
// threads.
class ThreadPool {
 public:
  // 0: the cores of this process' affinity mask.
  explicit ThreadPool(int num_threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const;
  // Which NUMA node each worker belongs to (base/numa.h); empty where there are fewer than two.
  const std::vector<size_t>& nodes() const;

  // Runs f(begin, end, worker) over disjoint ranges that cover [0, count). Each worker starts with
  // a contiguous share and then steals items from others. `grain` items are taken at a time.
  // Returns when all are done. The first exception of an item is rethrown here; items that had not
  // begun by then are skipped. Not reentrant: an item must not call parallel_for of the same pool.
  using Body = std::function<void(int64_t begin, int64_t end, int worker)>;
  void parallel_for(int64_t count, const Body& f, int64_t grain = 1);

  // What worker takes first: items [begin, end) of parallel_for(count, f, grain).
  struct Share {
    int64_t begin = 0, end = 0;
  };
  Share share_of(int worker, int64_t count, int64_t grain) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Number of cores this process may run on.
int num_available_cores();

}  // namespace rhea
