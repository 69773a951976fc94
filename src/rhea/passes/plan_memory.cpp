#include "rhea/passes/plan_memory.h"

#include <algorithm>
#include <functional>
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

int32_t end_of(const Lifetime& life) {
  return life.later.empty() ? life.last : life.later.back().last;
}

bool share_a_step(const Lifetime& a, const Lifetime& b) {
  if (a.first > end_of(b) || b.first > end_of(a)) return false;
  if (a.later.empty() && b.later.empty()) return true;
  const auto range = [](const Lifetime& life, size_t i) {
    return i == 0 ? StepRange{life.first, life.last} : life.later[i - 1];
  };
  for (size_t i = 0, j = 0; i <= a.later.size() && j <= b.later.size();) {
    const StepRange x = range(a, i), y = range(b, j);
    if (x.first <= y.last && y.first <= x.last) return true;
    ++(x.last < y.last ? i : j);
  }
  return false;
}

// The first step in which most bytes are alive, and how many.
std::pair<int32_t, int64_t> peak(std::span<const Lifetime> lifetimes) {
  std::map<int32_t, int64_t> change;
  const auto add = [&](int32_t first, int32_t last, int64_t bytes) {
    change[first] += bytes;
    change[last + 1] -= bytes;
  };
  for (const Lifetime& life : lifetimes) {
    add(life.first, life.last, padded(life));
    for (const StepRange& range : life.later) add(range.first, range.last, padded(life));
  }
  int64_t sum = 0;
  std::pair<int32_t, int64_t> best{0, 0};
  for (const auto& [step, bytes] : change) {
    sum += bytes;
    if (sum > best.second) best = {step, sum};
  }
  return best;
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
                   [&](size_t a, size_t b) { return end_of(lifetimes[a]) < end_of(lifetimes[b]); });
  FreeList free;
  std::vector<int64_t> offsets(lifetimes.size(), 0);
  size_t done = 0;
  for (const size_t i : begins) {
    for (; done < ends.size() && end_of(lifetimes[ends[done]]) < lifetimes[i].first; ++done)
      free.give(offsets[ends[done]], padded(lifetimes[ends[done]]));
    offsets[i] = free.take(padded(lifetimes[i]));
  }
  return offsets;
}

enum class Gap { smallest, lowest };

// In the given order, each in a gap between what is placed and overlaps it in time. Quadratic.
std::vector<int64_t> fill_gaps(std::span<const Lifetime> lifetimes,
                               const std::vector<size_t>& order, Gap which) {
  std::vector<int64_t> offsets(lifetimes.size(), 0);
  std::vector<size_t> placed;  // by offset
  placed.reserve(order.size());
  for (const size_t i : order) {
    const int64_t need = padded(lifetimes[i]);
    int64_t free_from = 0, best = -1, best_gap = 0;
    for (const size_t p : placed) {
      if (!share_a_step(lifetimes[p], lifetimes[i])) continue;
      const int64_t gap = offsets[p] - free_from;
      if (gap >= need && (best < 0 || (which == Gap::smallest && gap < best_gap))) {
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

bool alive(const Lifetime& life, int32_t step) { return share_a_step(life, {step, step, 0, {}}); }

int64_t largest_sum_alive(std::span<const Lifetime> lifetimes) { return peak(lifetimes).second; }

int32_t fullest_step(std::span<const Lifetime> lifetimes) { return peak(lifetimes).first; }

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
  constexpr size_t kQuadraticLimit = 10000, kEveryOrderLimit = 4000;
  consider(best_fit(lifetimes));
  const auto steps = [](const Lifetime& life) {
    return static_cast<double>(end_of(life) - life.first + 1);
  };
  const auto bytes = [](const Lifetime& life) { return static_cast<double>(life.bytes); };
  const std::function<double(const Lifetime&)> weights[] = {
      bytes, [&](const Lifetime& life) { return bytes(life) * steps(life); }, steps};
  auto order = indices(lifetimes);
  for (const auto& weight : weights) {
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return weight(lifetimes[a]) > weight(lifetimes[b]);
    });
    for (const Gap gap : {Gap::smallest, Gap::lowest}) {
      if (best.total == best.lower_bound || lifetimes.size() > kQuadraticLimit) return best;
      consider(fill_gaps(lifetimes, order, gap));
      if (lifetimes.size() > kEveryOrderLimit) return best;
    }
  }
  return best;
}

}  // namespace rhea::passes
