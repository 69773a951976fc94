// Reading a native step folder: whole tensors or any slice, every byte verified before it is used.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "rhea/base/error.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/checkpoint/manifest.h"
#include "rhea/components/checkpoint/named_tensor.h"

namespace rhea::checkpoint {

// Bytes on the disk are not what was written.
class DamageError : public Error {
 public:
  template <class... Args>
  explicit DamageError(fmt::format_string<Args...> format, Args&&... args)
      : Error(fmt::format(format, std::forward<Args>(args)...)) {}
};

class StepReader {
 public:
  // Throws DamageError naming the file that is missing, truncated or damaged (as all reads do).
  explicit StepReader(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }

  // The box of tensor `name` at `offset` with `shape`, in the stored dtype, row-major. Only the
  // blocks that it touches are read.
  void read_slice(const std::string& name, std::span<const int64_t> offset,
                  std::span<const int64_t> shape, std::span<std::byte> out) const;
  // A whole tensor into the memory of `target`, converted to its dtype.
  void read(const NamedTensor& target) const;

  // Compares names, shapes and kinds of dtype of those stored tensors for which `wanted` is true
  // with `targets`, then reads all of them. Throws Error listing every difference before anything
  // is read. Logs the progress every ten seconds.
  void read_all(std::span<const NamedTensor> targets,
                const std::function<bool(const std::string&)>& wanted) const;

 private:
  // Gives back the memory of the pages that were read.
  void release(const StoredTensor& tensor) const;
  void verify(const std::string& name, const Chunk& chunk, uint64_t begin, uint64_t end) const;

  std::filesystem::path path_;
  Manifest manifest_;
  std::map<std::string, MappedFile> files_;
};

}  // namespace rhea::checkpoint
