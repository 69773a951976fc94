// Memory from huge pages. The system zeroes a page when it is first touched, which is left to the
// worker that needs it: a pass over all of it before the first step would cost that step's time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace rhea::exec::cpu {

// On a machine with several NUMA nodes: pages come from all of them in turn, or from that of the
// thread that touches them first.
enum class Pages : uint8_t { from_all_nodes, near_first_touch };

// One anonymous mapping of zeros, aligned to 2 MiB, with huge pages asked for. Throws ExitError
// (out_of_memory) with the size.
class Mapping {
 public:
  Mapping() = default;
  // `what` names the use in the error message.
  Mapping(int64_t bytes, const char* what, Pages pages = Pages::from_all_nodes);
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  void* base_ = nullptr;  // what mmap returned
  size_t mapped_ = 0;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

// Where the scratch of each worker begins, and the bytes of all.
struct ScratchPlaces {
  std::vector<int64_t> begin;
  int64_t bytes = 0;
};
// `stride` bytes for each worker. With the nodes of the workers (base/numa.h; else empty), those of
// one node share no huge page with those of another: the first touch is on the right node.
ScratchPlaces place_scratch(int64_t stride, int num_threads, const std::vector<size_t>& nodes);

// Grows, never shrinks. Nothing in it survives from one executable's run to another's.
class Arena {
 public:
  // Makes room for `bytes`; the content is lost when the memory moves.
  void reserve(int64_t bytes);
  std::byte* data() const { return mapping_.data(); }
  int64_t bytes() const { return mapping_.bytes(); }
  // The same for scratch of threads, in pages near those that use it: `stride` bytes for each, at
  // the same place for all executables, because the first touch decides for all of them.
  void reserve_scratch(int64_t stride, int num_threads, const std::vector<size_t>& nodes);
  std::byte* scratch() const { return scratch_.data(); }
  int64_t scratch_bytes() const { return scratch_.bytes(); }
  const ScratchPlaces& scratch_places() const { return scratch_places_; }
  // Changes whenever data() or scratch() moves: executables resolve their pointers again.
  uint64_t generation() const { return generation_; }

 private:
  Mapping mapping_, scratch_;
  int64_t scratch_stride_ = 0;
  ScratchPlaces scratch_places_;
  uint64_t generation_ = 0;
};

}  // namespace rhea::exec::cpu
