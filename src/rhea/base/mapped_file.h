// Read-only memory map of a file.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace rhea {

class MappedFile {
 public:
  MappedFile() = default;
  // Throws Error naming the path and the system's reason. An empty file gives an empty span.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Lets the system take back the memory of whole pages of `part`, a range of bytes(): whoever
  // reads a large file once stays small. They are read from the disk again when they are used
  // again.
  void release(std::span<const std::byte> part) const;
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Whole file as a string; throws Error naming path and reason.
std::string read_file(const std::filesystem::path& path);
// Writes to a temporary name beside `path`, syncs, renames: readers see the old or the new file.
// Throws Error; on a full disk ExitError with out_of_memory. Nothing is left behind on failure.
void write_file_atomic(const std::filesystem::path& path, std::string_view content);

}  // namespace rhea
