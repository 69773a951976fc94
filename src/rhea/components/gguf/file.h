// Reading a GGUF file: metadata and tensors, nothing copied until a tensor is used.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "rhea/base/mapped_file.h"
#include "rhea/components/gguf/block_type.h"

namespace rhea::gguf {

// Integers of every width are int64_t, floats double, elements of a list likewise.
using Value = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                           std::vector<double>, std::vector<std::string>>;

struct Field {
  std::string key;
  Value value;
};

// `shape` is row-major, the reverse of the file's order. `blocks` points into the file.
struct Tensor {
  std::string name;
  std::vector<int64_t> shape;
  const BlockType* type = nullptr;
  std::span<const std::byte> blocks;

  int64_t num_elements() const;
  std::string describe() const;  // "Q4_K [576, 1536]"
};

struct Header {
  uint32_t version = 0;
  std::vector<Field> fields;
  std::vector<Tensor> tensors;  // in the order of the file; blocks lie in the parsed bytes
};

// Parses and checks the bytes of a whole file; `where` (the path) begins every error. Refuses other
// magics, versions but 2 and 3, big-endian files, counts, lengths and offsets that reach past the
// end, equal names, rows that are no whole blocks, and tensors that overlap or leave gaps.
// Allocates no more than the file's own size suggests.
Header parse(std::span<const std::byte> file, std::string_view where);

class File {
 public:
  // Throws Error naming the path and what is wrong with it.
  explicit File(const std::filesystem::path& path);
  // True when the file begins as a GGUF file does.
  static bool is_gguf(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  uint32_t version() const { return header_.version; }
  const std::vector<Field>& fields() const { return header_.fields; }
  const std::vector<Tensor>& tensors() const { return header_.tensors; }
  // Null when there is no such tensor.
  const Tensor* find(std::string_view name) const;

  // Value of a metadata key. Without the key: the fallback, or Error naming it where there is none.
  // Error too for a value of another kind.
  bool flag(const std::string& key, bool fallback) const;
  int64_t integer(const std::string& key) const;
  int64_t integer(const std::string& key, int64_t fallback) const;
  double number(const std::string& key) const;
  double number(const std::string& key, double fallback) const;
  std::string text(const std::string& key) const;
  std::string text(const std::string& key, const std::string& fallback) const;
  // A list; null when the key is absent.
  const std::vector<int64_t>* integers(const std::string& key) const;
  const std::vector<double>* numbers(const std::string& key) const;
  const std::vector<std::string>* texts(const std::string& key) const;
  bool has(const std::string& key) const { return values_.contains(key); }
  // Gives back the memory of a tensor's pages (MappedFile::release).
  void release(const Tensor& tensor) const { map_.release(tensor.blocks); }

 private:
  template <class T>
  const T* find_value(const std::string& key, const char* kind) const;
  template <class T>
  const T& require(const std::string& key, const char* kind) const;

  std::filesystem::path path_;
  MappedFile map_;
  Header header_;
  std::unordered_map<std::string, const Value*> values_;
  std::unordered_map<std::string, const Tensor*> tensors_;
};

}  // namespace rhea::gguf
