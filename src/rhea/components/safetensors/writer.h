// Writing one safetensors file: streamed, to a temporary name, synced, renamed.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "rhea/components/safetensors/header.h"
#include "rhea/components/safetensors/reader.h"

namespace rhea::safetensors {

// What a file will hold, known before the first byte of data.
struct TensorSpec {
  std::string name;
  ElementType dtype = ElementType::F32;
  std::vector<int64_t> shape;
};

class Writer {
 public:
  // Creates a temporary file beside `path` and writes the header. Wider elements come first in the
  // file, so that every tensor is aligned. Throws Error on a name that comes twice; on a full disk
  // ExitError with out_of_memory (as write and finish do).
  Writer(const std::filesystem::path& path, std::span<const TensorSpec> tensors,
         const std::map<std::string, std::string>& metadata = {});
  // Removes the temporary file unless finish() succeeded.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // The next bytes of tensor `index` (position in `tensors`). Tensors may come in any order and in
  // pieces; row-major.
  void write(size_t index, std::span<const std::byte> bytes);
  // Where the tensor lies in the finished file.
  uint64_t file_offset(size_t index) const;
  // Syncs and renames to `path`. A symbolic link there is replaced, its target is not touched.
  void finish();
  // Bytes of the whole file.
  uint64_t file_size() const { return file_size_; }

 private:
  [[noreturn]] void fail(const char* action) const;
  void write_at(uint64_t offset, std::span<const std::byte> bytes);

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int fd_ = -1;
  uint64_t file_size_ = 0;
  struct Slot {
    std::string name;
    uint64_t next;  // file offset of the next byte
    uint64_t begin;
    uint64_t end;
  };
  std::vector<Slot> slots_;
};

// All tensors at once, as they are in memory.
void write_file(const std::filesystem::path& path, std::span<const TensorView> tensors,
                const std::map<std::string, std::string>& metadata = {});

}  // namespace rhea::safetensors
