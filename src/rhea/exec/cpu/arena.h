// Memory from huge pages. The system zeroes a page when it is first touched, which is left to the
// worker that needs it: a pass over all of it before the first step would cost that step's time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace rhea::exec::cpu {

// One anonymous mapping of zeros, aligned to 2 MiB, with huge pages asked for. Throws ExitError
// (out_of_memory) with the size.
class Mapping {
 public:
  Mapping() = default;
  // `what` names the use in the error message.
  Mapping(int64_t bytes, const char* what);
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

// Grows, never shrinks. Nothing in it survives from one executable's run to another's.
class Arena {
 public:
  // Makes room for `bytes`; the content is lost when the memory moves.
  void reserve(int64_t bytes);
  std::byte* data() const { return mapping_.data(); }
  int64_t bytes() const { return mapping_.bytes(); }
  // Changes whenever data() moves: executables resolve their pointers again.
  uint64_t generation() const { return generation_; }

 private:
  Mapping mapping_;
  uint64_t generation_ = 0;
};

}  // namespace rhea::exec::cpu
