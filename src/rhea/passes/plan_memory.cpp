#include "rhea/passes/plan_memory.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "rhea/base/error.h"

namespace rhea::passes {
namespace {

constexpr int64_t kAlignment = 64;

int64_t padded(const Lifetime& life) { return round_up(life.bytes, kAlignment); }

std::vector<size_t> indices(std::span<const Lifetime> lifetimes) {
  std::vector<size_t> order;
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    if (lifetimes[i].bytes > 0) order.push_back(i);
  }
  return order;
}

int64_t largest_sum_alive(std::span<const Lifetime> lifetimes) {
  std::map<int32_t, int64_t> change;
  for (const Lifetime& life : lifetimes) {
    change[life.first] += padded(life);
    change[life.last + 1] -= padded(life);
  }
  int64_t alive = 0, largest = 0;
  for (const auto& [step, bytes] : change) largest = std::max(largest, alive += bytes);
  return largest;
}

// Free space of an arena that is filled and emptied step by step.
class FreeList {
 public:
  // The open end of the arena is one hole, larger than any other, so it is used last.
  FreeList() { insert(0, int64_t{1} << 60); }

  // The smallest hole that fits; among equal ones the lowest.
  int64_t take(int64_t bytes) {
    const auto hole = by_size_.lower_bound({bytes, 0});
    RHEA_CHECK(hole != by_size_.end(), "memory plan: no hole of {} bytes", bytes);
    const auto [size, begin] = *hole;
    erase_at(by_begin_.find(begin));
    if (bytes < size) insert(begin + bytes, size - bytes);
    return begin;
  }

  void give(int64_t begin, int64_t bytes) {
    auto next = by_begin_.lower_bound(begin);
    if (next != by_begin_.end() && next->first == begin + bytes) {
      bytes += next->second;
      next = erase_at(next);
    }
    if (next != by_begin_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == begin) {
        begin = before->first;
        bytes += before->second;
        erase_at(before);
      }
    }
    insert(begin, bytes);
  }

 private:
  using Map = std::map<int64_t, int64_t>;
  void insert(int64_t begin, int64_t size) {
    by_begin_.emplace(begin, size);
    by_size_.emplace(size, begin);
  }
  Map::iterator erase_at(Map::iterator at) {
    by_size_.erase({at->second, at->first});
    return by_begin_.erase(at);
  }

  Map by_begin_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
};

// Best fit in the order of the steps.
std::vector<int64_t> best_fit(std::span<const Lifetime> lifetimes) {
  auto begins = indices(lifetimes);
  auto ends = begins;
  std::stable_sort(begins.begin(), begins.end(), [&](size_t a, size_t b) {
    const auto &x = lifetimes[a], &y = lifetimes[b];
    return x.first != y.first ? x.first < y.first : x.bytes > y.bytes;
  });
  std::stable_sort(ends.begin(), ends.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].last < lifetimes[b].last; });
  FreeList free;
  std::vector<int64_t> offsets(lifetimes.size(), 0);
  size_t done = 0;
  for (const size_t i : begins) {
    for (; done < ends.size() && lifetimes[ends[done]].last < lifetimes[i].first; ++done)
      free.give(offsets[ends[done]], padded(lifetimes[ends[done]]));
    offsets[i] = free.take(padded(lifetimes[i]));
  }
  return offsets;
}

// Largest first, each at the smallest gap between what is placed and overlaps it in time.
// Quadratic.
std::vector<int64_t> largest_first(std::span<const Lifetime> lifetimes) {
  auto order = indices(lifetimes);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  std::vector<int64_t> offsets(lifetimes.size(), 0);
  std::vector<size_t> placed;  // by offset
  placed.reserve(order.size());
  for (const size_t i : order) {
    const int64_t need = padded(lifetimes[i]);
    int64_t free_from = 0, best = -1, best_gap = 0;
    for (const size_t p : placed) {
      if (lifetimes[p].first > lifetimes[i].last || lifetimes[p].last < lifetimes[i].first)
        continue;
      const int64_t gap = offsets[p] - free_from;
      if (gap >= need && (best < 0 || gap < best_gap)) {
        best = free_from;
        best_gap = gap;
      }
      free_from = std::max(free_from, offsets[p] + padded(lifetimes[p]));
    }
    offsets[i] = best >= 0 ? best : free_from;
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](size_t a, size_t b) { return offsets[a] < offsets[b]; }),
                  i);
  }
  return offsets;
}

}  // namespace

MemoryLayout plan_memory(std::span<const Lifetime> lifetimes) {
  MemoryLayout best;
  best.lower_bound = largest_sum_alive(lifetimes);
  best.total = -1;
  const auto consider = [&](std::vector<int64_t> offsets) {
    int64_t total = 0;
    for (size_t i = 0; i < lifetimes.size(); ++i)
      total = std::max(total, offsets[i] + padded(lifetimes[i]));
    if (best.total < 0 || total < best.total) {
      best.total = total;
      best.offsets = std::move(offsets);
    }
  };
  constexpr size_t kQuadraticLimit = 4000;
  consider(best_fit(lifetimes));
  if (lifetimes.size() <= kQuadraticLimit && best.total > best.lower_bound)
    consider(largest_first(lifetimes));
  return best;
}

}  // namespace rhea::passes
