// Look-ups in a parsed file.
#include "rhea/components/gguf/file.h"

#include <fstream>

#include "rhea/base/error.h"

namespace rhea::gguf {

File::File(const std::filesystem::path& path)
    : path_(path), map_(path), header_(parse(map_.bytes(), path.string())) {
  for (const Field& field : header_.fields) values_.emplace(field.key, &field.value);
  for (const Tensor& tensor : header_.tensors) tensors_.emplace(tensor.name, &tensor);
  const int64_t num_parts = integer("split.count", 1);
  if (num_parts > 1)
    throw Error("{} is part {} of {}; join the parts first (llama-gguf-split --merge)",
                path.string(), integer("split.no", 0) + 1, num_parts);
}

bool File::is_gguf(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  char magic[4] = {};
  stream.read(magic, sizeof magic);
  return stream.gcount() == 4 && std::string_view(magic, 4) == "GGUF";
}

const Tensor* File::find(std::string_view name) const {
  const auto found = tensors_.find(std::string(name));
  return found == tensors_.end() ? nullptr : found->second;
}

template <class T>
const T* File::find_value(const std::string& key, const char* kind) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return nullptr;
  const T* value = std::get_if<T>(found->second);
  if (value == nullptr) throw Error("{}: {} is not {}", path_.string(), key, kind);
  return value;
}

template <class T>
const T& File::require(const std::string& key, const char* kind) const {
  const T* value = find_value<T>(key, kind);
  if (value == nullptr) throw Error("{}: the metadata has no {} ({})", path_.string(), key, kind);
  return *value;
}

bool File::flag(const std::string& key, bool fallback) const {
  const bool* value = find_value<bool>(key, "a boolean");
  return value == nullptr ? fallback : *value;
}

int64_t File::integer(const std::string& key) const { return require<int64_t>(key, "an integer"); }
int64_t File::integer(const std::string& key, int64_t fallback) const {
  return has(key) ? integer(key) : fallback;
}
double File::number(const std::string& key) const { return require<double>(key, "a number"); }
double File::number(const std::string& key, double fallback) const {
  return has(key) ? number(key) : fallback;
}
std::string File::text(const std::string& key) const { return require<std::string>(key, "a text"); }
std::string File::text(const std::string& key, const std::string& fallback) const {
  return has(key) ? text(key) : fallback;
}

const std::vector<int64_t>* File::integers(const std::string& key) const {
  return find_value<std::vector<int64_t>>(key, "a list of integers");
}
const std::vector<double>* File::numbers(const std::string& key) const {
  return find_value<std::vector<double>>(key, "a list of numbers");
}
const std::vector<std::string>* File::texts(const std::string& key) const {
  return find_value<std::vector<std::string>>(key, "a list of texts");
}

}  // namespace rhea::gguf
