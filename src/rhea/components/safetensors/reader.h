// Reading safetensors: one file, or the weights of a Hugging Face folder. Nothing is copied until a
// tensor is used.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rhea/base/mapped_file.h"
#include "rhea/components/safetensors/element_type.h"

namespace rhea::safetensors {

// A named tensor, row-major. `bytes` points into a map or a buffer that the view does not own, and
// may be unaligned.
struct TensorView {
  std::string name;
  ElementType dtype = ElementType::F32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;

  int64_t num_elements() const {
    return static_cast<int64_t>(bytes.size()) * 8 / element_bits(dtype);
  }
  // "F32 [2, 3]", for messages.
  std::string describe() const;
};

// The tensor converted to `dtype` into `out`, which must have num_elements() * dtype_size(dtype)
// bytes. Throws Error naming the tensor when the types do not convert.
void read_as(const TensorView& tensor, DType dtype, std::span<std::byte> out);
// The same as a vector; T is a type of rhea/base/dtype.h.
template <class T>
std::vector<T> read_vector(const TensorView& tensor) {
  std::vector<T> values(static_cast<size_t>(tensor.num_elements()));
  read_as(tensor, dtype_of<T>(), std::as_writable_bytes(std::span(values)));
  return values;
}

// One mapped file. Views stay valid as long as the File (also after it was moved, and after the
// file was replaced on disk).
class File {
 public:
  // Throws Error naming the path and what is wrong with it.
  explicit File(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  // In the order of their bytes in the file.
  const std::vector<TensorView>& tensors() const { return tensors_; }
  // Null when there is no such tensor.
  const TensorView* find(std::string_view name) const;
  // Throws Error naming file and tensor.
  const TensorView& at(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // Gives back the memory of bytes of a tensor (MappedFile::release); false for bytes that are not
  // this file's.
  bool release(std::span<const std::byte> bytes) const;

 private:
  std::filesystem::path path_;
  MappedFile map_;
  std::vector<TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
  std::unordered_map<std::string, size_t> index_;
};

// The weights of a folder: the files that `model.safetensors.index.json` names, and no others,
// where it exists; else `model.safetensors`; else every *.safetensors, which must not share a name.
// A path of a file is read as that file.
class Weights {
 public:
  // Throws Error: no weights there; shards that the index names are absent, tensors
  // that shards lack (all are listed); a name in two files.
  explicit Weights(const std::filesystem::path& path);
  // True when the folder holds something that the constructor would try to read.
  static bool exist(const std::filesystem::path& folder);

  // Every name, sorted.
  const std::vector<std::string>& names() const { return names_; }
  const TensorView* find(std::string_view name) const;
  // Throws Error naming the folder or index and the tensor.
  const TensorView& at(std::string_view name) const;
  const std::filesystem::path& path() const { return path_; }
  const std::vector<File>& files() const { return files_; }
  // See File::release.
  void release(std::span<const std::byte> bytes) const;

 private:
  void open_index(const std::filesystem::path& index);
  void open_all(const std::vector<std::filesystem::path>& paths);
  void add(const TensorView& tensor);

  std::filesystem::path path_;
  bool indexed_ = false;
  std::vector<File> files_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, const TensorView*> tensors_;
};

// Name of the index in a folder of shards.
inline constexpr const char* kIndexName = "model.safetensors.index.json";
inline constexpr const char* kSingleName = "model.safetensors";

// weight_map of an index: tensor name to file name. Throws Error on anything but plain file names
// in the index's own folder, and on a name that comes twice.
std::map<std::string, std::string> read_index(const std::filesystem::path& index);

}  // namespace rhea::safetensors
