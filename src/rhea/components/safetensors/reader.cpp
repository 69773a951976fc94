// Files and folders of weights.
#include "rhea/components/safetensors/reader.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/components/safetensors/header.h"

namespace rhea::safetensors {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> weight_files(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& item : fs::directory_iterator(folder)) {
    if (item.path().extension() == ".safetensors" && item.is_regular_file())
      paths.push_back(item.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

std::string TensorView::describe() const {
  return fmt::format("{} [{}]", element_type_name(dtype), fmt::join(shape, ", "));
}

void read_as(const TensorView& tensor, DType dtype, std::span<std::byte> out) {
  RHEA_CHECK(static_cast<int64_t>(out.size()) == tensor.num_elements() * dtype_size(dtype),
             "{} ({}) into {} bytes of {}", tensor.name, tensor.describe(), out.size(),
             dtype_name(dtype));
  try {
    convert(tensor.dtype, tensor.bytes, dtype, out);
  } catch (const Error& error) {
    throw Error("tensor '{}': {}", tensor.name, error.what());
  }
}

File::File(const fs::path& path) : path_(path), map_(path) {
  Header header = parse_header(map_.bytes(), path.string());
  metadata_ = std::move(header.metadata);
  tensors_.reserve(header.entries.size());
  for (Entry& entry : header.entries) {
    index_.emplace(entry.name, tensors_.size());
    tensors_.push_back(
        {std::move(entry.name), entry.dtype, std::move(entry.shape),
         map_.bytes().subspan(header.data_begin + entry.begin, entry.end - entry.begin)});
  }
}

const TensorView* File::find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

const TensorView& File::at(std::string_view name) const {
  const TensorView* tensor = find(name);
  if (tensor == nullptr) throw Error("{} holds no tensor '{}'", path_.string(), name);
  return *tensor;
}

bool File::release(std::span<const std::byte> bytes) const {
  const auto file = map_.bytes();
  if (bytes.data() < file.data() || bytes.data() + bytes.size() > file.data() + file.size())
    return false;
  map_.release(bytes);
  return true;
}

bool Weights::exist(const fs::path& folder) {
  if (!fs::is_directory(folder)) return false;
  return fs::exists(folder / kIndexName) || !weight_files(folder).empty();
}

Weights::Weights(const fs::path& path) : path_(path) {
  if (fs::is_regular_file(path)) {
    open_all({path});
  } else if (!fs::is_directory(path)) {
    throw Error("{}: no such file or folder to read weights from", path.string());
  } else if (fs::exists(path / kIndexName)) {
    open_index(path / kIndexName);
  } else if (fs::exists(path / kSingleName)) {
    open_all({path / kSingleName});
  } else {
    const auto paths = weight_files(path);
    if (paths.empty())
      throw Error("{} holds no weights (looked for {}, {}, *.safetensors){}", path.string(),
                  kIndexName, kSingleName,
                  fs::exists(path / "pytorch_model.bin") ||
                          fs::exists(path / "pytorch_model.bin.index.json")
                      ? "; its pytorch_model.bin is a Python program's state, which is not read: "
                        "save it as safetensors"
                      : "");
    open_all(paths);
  }
  std::sort(names_.begin(), names_.end());
}

void Weights::add(const TensorView& tensor) {
  tensors_.emplace(tensor.name, &tensor);
  names_.push_back(tensor.name);
}

void Weights::open_all(const std::vector<fs::path>& paths) {
  files_.reserve(paths.size());
  std::unordered_map<std::string_view, const File*> owners;
  for (const fs::path& path : paths) {
    const File& file = files_.emplace_back(path);
    for (const TensorView& tensor : file.tensors()) {
      const auto [owner, is_new] = owners.emplace(tensor.name, &file);
      if (!is_new) {
        throw Error(
            "tensor '{}' is in {} and in {}; a folder with both needs a {} that says which counts",
            tensor.name, owner->second->path().string(), path.string(), kIndexName);
      }
      add(tensor);
    }
  }
}

void Weights::open_index(const fs::path& index) {
  indexed_ = true;
  const auto weight_map = read_index(index);
  std::map<std::string, const File*> shards;
  for (const auto& [name, shard] : weight_map) shards.emplace(shard, nullptr);
  std::vector<std::string> absent;
  for (const auto& [shard, file] : shards) {
    if (!fs::exists(index.parent_path() / shard)) absent.push_back(shard);
  }
  if (!absent.empty()) {
    throw Error("{} names {} file(s) that are not there: {} (incomplete download?)", index.string(),
                absent.size(), fmt::join(absent, ", "));
  }
  files_.reserve(shards.size());
  for (auto& [shard, file] : shards) file = &files_.emplace_back(index.parent_path() / shard);
  std::vector<std::string> misplaced;
  for (const auto& [name, shard] : weight_map) {
    if (const TensorView* tensor = shards.at(shard)->find(name))
      add(*tensor);
    else
      misplaced.push_back(fmt::format("'{}' into {}", name, shard));
  }
  if (!misplaced.empty()) {
    throw Error("{} puts {} tensor(s) into files that do not hold them:\n  {}", index.string(),
                misplaced.size(), fmt::join(misplaced, "\n  "));
  }
}

const TensorView* Weights::find(std::string_view name) const {
  const auto found = tensors_.find(std::string(name));
  return found == tensors_.end() ? nullptr : found->second;
}

void Weights::release(std::span<const std::byte> bytes) const {
  for (const File& file : files_)
    if (file.release(bytes)) return;
}

const TensorView& Weights::at(std::string_view name) const {
  const TensorView* tensor = find(name);
  if (tensor != nullptr) return *tensor;
  if (!indexed_) throw Error("{} holds no tensor '{}'", path_.string(), name);
  for (const File& file : files_) {
    if (file.find(name) != nullptr) {
      throw Error("tensor '{}' is not in the index {}, although {} holds one", name,
                  (path_ / kIndexName).string(), file.path().filename().string());
    }
  }
  throw Error("tensor '{}' is not in the index {}", name, (path_ / kIndexName).string());
}

}  // namespace rhea::safetensors
