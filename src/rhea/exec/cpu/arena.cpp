#include "rhea/exec/cpu/arena.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "rhea/base/error.h"
#include "rhea/base/machine_memory.h"
#include "rhea/base/numa.h"
#include "rhea/exec/cpu/backend.h"

namespace rhea::exec::cpu {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

double gib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

}  // namespace

Mapping::Mapping(int64_t bytes, const char* what, Pages pages) {
  if (bytes <= 0) return;
  bytes_ = round_up(bytes, kHugePage);
  const auto refuse = [&](const std::string& reason) {
    throw ExitError(
        ExitCode::out_of_memory,
        fmt::format("cannot reserve {:.2f} GiB of memory for {}: {}; make the batch, "
                    "the sequence or the model smaller, or use activation checkpointing",
                    gib(bytes_), what, reason));
  };
  // The system hands out addresses without memory behind them, and ends the process once they are
  // touched.
  if (const MachineMemory memory = machine_memory(); bytes_ > memory.available)
    refuse(fmt::format("{:.2f} GiB are left ({})", gib(memory.available), memory.bound));
  // One page more than needed, so that the start can be moved to a huge page border; the rest is
  // never touched.
  mapped_ = static_cast<size_t>(bytes_ + kHugePage);
  base_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base_ == MAP_FAILED) {
    base_ = nullptr;
    refuse("the system gives no more");
  }
  const auto address = reinterpret_cast<uintptr_t>(base_);
  const auto page = static_cast<uintptr_t>(kHugePage);
  data_ = static_cast<std::byte*>(base_) + ((address + page - 1) / page * page - address);
  madvise(data_, static_cast<size_t>(bytes_), MADV_HUGEPAGE);
  if (pages == Pages::near_first_touch) return;
  // Any worker may take any item of a grid, so no node is nearer to a buffer than another.
  if (const std::vector<int> nodes = memory_nodes(); nodes.size() > 1)
    interleave_pages(data_, static_cast<size_t>(bytes_), nodes);
}

Mapping::~Mapping() {
  if (base_ != nullptr) munmap(base_, mapped_);
}

Mapping::Mapping(Mapping&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      mapped_(std::exchange(other.mapped_, 0)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(mapped_, other.mapped_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void Arena::reserve(int64_t bytes) {
  if (bytes <= mapping_.bytes()) return;
  mapping_ = Mapping();  // the old pages go back first: peak memory is the larger size, not the sum
  mapping_ = Mapping(bytes, "the arena of intermediate values");
  ++generation_;
}

void Arena::reserve_scratch(int64_t stride, int num_threads, const std::vector<size_t>& nodes) {
  const bool has_all = static_cast<size_t>(num_threads) <= scratch_places_.begin.size();
  if (has_all && stride <= scratch_stride_) return;
  scratch_stride_ = std::max(scratch_stride_, stride);
  scratch_places_ = place_scratch(scratch_stride_, num_threads, nodes);
  scratch_ = Mapping();
  if (scratch_places_.bytes > 0)
    scratch_ = Mapping(scratch_places_.bytes, "the scratch of threads", Pages::near_first_touch);
  ++generation_;
}

ScratchPlaces place_scratch(int64_t stride, int num_threads, const std::vector<size_t>& nodes) {
  ScratchPlaces places;
  for (size_t worker = 0; worker < static_cast<size_t>(num_threads); ++worker) {
    if (!nodes.empty() && worker > 0 && nodes[worker] != nodes[worker - 1])
      places.bytes = round_up(places.bytes, kHugePage);
    places.begin.push_back(places.bytes);
    places.bytes += stride;
  }
  return places;
}

std::shared_ptr<Arena> make_arena() { return std::make_shared<Arena>(); }

std::shared_ptr<void> allocate_state(int64_t bytes) {
  // Shared: parameters are held by the model, the optimizer and the checkpoint writer.
  auto mapping = std::make_shared<Mapping>(bytes, "parameters and optimizer state");
  return {mapping, mapping->data()};
}

}  // namespace rhea::exec::cpu
