// Slices of boxes.
#include "rhea/components/checkpoint/step_reader.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "rhea/components/checkpoint/checksum.h"
#include "rhea/components/checkpoint/key_report.h"
#include "rhea/components/checkpoint/progress.h"
#include "rhea/components/safetensors/element_type.h"

namespace rhea::checkpoint {
namespace {

// A box inside a row-major array: element strides and the first element.
struct Box {
  std::vector<int64_t> strides;
  int64_t first = 0;
};

Box box_in(std::span<const int64_t> array_shape, std::span<const int64_t> position) {
  Box box;
  box.strides.resize(array_shape.size());
  int64_t stride = 1;
  for (size_t d = array_shape.size(); d-- > 0;) {
    box.strides[d] = stride;
    box.first += position[d] * stride;
    stride *= array_shape[d];
  }
  return box;
}

// Calls copy(from element, to element, count) for each run of the last dimension of a box of
// `shape` in two arrays.
template <class Copy>
void for_each_run(std::span<const int64_t> shape, const Box& from, const Box& to,
                  const Copy& copy) {
  if (shape.empty()) return copy(int64_t{0}, int64_t{0}, int64_t{1});
  const size_t last = shape.size() - 1;
  std::vector<int64_t> index(shape.size(), 0);
  while (true) {
    int64_t source = from.first;
    int64_t target = to.first;
    for (size_t d = 0; d < last; ++d) {
      source += index[d] * from.strides[d];
      target += index[d] * to.strides[d];
    }
    copy(source, target, shape[last]);
    size_t d = last;
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

std::string describe(DType dtype, std::span<const int64_t> shape) {
  return fmt::format("{} [{}]", dtype_name(dtype), fmt::join(shape, ", "));
}

}  // namespace

StepReader::StepReader(const std::filesystem::path& path) : path_(path) {
  const auto manifest_path = path / kManifestName;
  try {
    manifest_ = parse_manifest(MappedFile(manifest_path).text(), manifest_path.string());
  } catch (const Error& error) {
    throw DamageError("{}", error.what());
  }
  for (const auto& [name, size] : manifest_.files) {
    const auto file = path / name;
    const MappedFile& map = files_.emplace(name, MappedFile(file)).first->second;
    if (map.bytes().size() != size)
      throw DamageError("{} has {} bytes, {} lists {}; it is truncated or damaged", file.string(),
                        map.bytes().size(), kManifestName, size);
  }
}

void StepReader::verify(const std::string& name, const Chunk& chunk, uint64_t begin,
                        uint64_t end) const {
  const auto bytes = files_.at(chunk.file).bytes().subspan(chunk.begin, chunk.end - chunk.begin);
  for (uint64_t block = begin / kChecksumBlock; block * kChecksumBlock < end; ++block) {
    const uint64_t at = block * kChecksumBlock;
    const uint64_t size = std::min(kChecksumBlock, bytes.size() - at);
    if (xxh64(bytes.subspan(at, size)) != chunk.checksums[block]) {
      throw DamageError("{} is damaged: bytes {} to {}, in tensor '{}', do not have their checksum",
                        (path_ / chunk.file).string(), chunk.begin + at, chunk.begin + at + size,
                        name);
    }
  }
}

void StepReader::read_slice(const std::string& name, std::span<const int64_t> offset,
                            std::span<const int64_t> shape, std::span<std::byte> out) const {
  const StoredTensor& tensor = manifest_.tensors.at(name);
  const int64_t item = dtype_size(tensor.dtype);
  const size_t rank = tensor.shape.size();
  for (const Chunk& chunk : tensor.chunks) {
    std::vector<int64_t> in_chunk(rank), in_slice(rank), overlap(rank);
    bool empty = chunk.begin == chunk.end;
    for (size_t d = 0; d < rank; ++d) {
      const int64_t begin = std::max(offset[d], chunk.offset[d]);
      const int64_t end = std::min(offset[d] + shape[d], chunk.offset[d] + chunk.shape[d]);
      in_chunk[d] = begin - chunk.offset[d];
      in_slice[d] = begin - offset[d];
      overlap[d] = end - begin;
      if (end <= begin) empty = true;
    }
    if (empty) continue;
    const Box from = box_in(chunk.shape, in_chunk);
    const Box to = box_in(shape, in_slice);
    int64_t last = from.first;
    for (size_t d = 0; d < rank; ++d) last += (overlap[d] - 1) * from.strides[d];
    verify(name, chunk, static_cast<uint64_t>(from.first * item),
           static_cast<uint64_t>((last + 1) * item));
    const std::byte* data = files_.at(chunk.file).bytes().data() + chunk.begin;
    for_each_run(overlap, from, to, [&](int64_t source, int64_t target, int64_t count) {
      std::memcpy(out.data() + target * item, data + source * item,
                  static_cast<size_t>(count * item));
    });
  }
}

void StepReader::release(const StoredTensor& tensor) const {
  for (const Chunk& chunk : tensor.chunks) {
    const MappedFile& file = files_.at(chunk.file);
    file.release(file.bytes().subspan(chunk.begin, chunk.end - chunk.begin));
  }
}

void StepReader::read(const NamedTensor& target) const {
  const StoredTensor& tensor = manifest_.tensors.at(target.name);
  // Some rows at a time, so that a large tensor is not in memory twice.
  constexpr int64_t kPieceBytes = 32 << 20;
  const int64_t item = dtype_size(tensor.dtype), to_item = dtype_size(target.dtype);
  const int64_t num_rows = tensor.shape.empty() ? 1 : tensor.shape[0];
  const int64_t row = num_rows == 0 ? 0 : target.num_elements() / num_rows;
  const int64_t rows = std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(row * item, 1));
  std::vector<int64_t> offset(tensor.shape.size(), 0), shape = tensor.shape;
  std::vector<std::byte> stored;
  for (int64_t begin = 0; begin < num_rows; begin += rows) {
    const int64_t count = std::min(rows, num_rows - begin);
    if (!shape.empty()) offset[0] = begin, shape[0] = count;
    const auto out = target.writable_bytes().subspan(static_cast<size_t>(begin * row * to_item),
                                                     static_cast<size_t>(count * row * to_item));
    if (tensor.dtype == target.dtype) {
      read_slice(target.name, offset, shape, out);
    } else {
      stored.resize(static_cast<size_t>(count * row * item));
      read_slice(target.name, offset, shape, stored);
      safetensors::convert(safetensors::element_type_of(tensor.dtype), stored, target.dtype, out);
    }
    release(tensor);
  }
}

void StepReader::read_all(std::span<const NamedTensor> targets,
                          const std::function<bool(const std::string&)>& wanted) const {
  KeyReport report;
  std::map<std::string_view, const NamedTensor*> by_name;
  for (const NamedTensor& target : targets) {
    by_name.emplace(target.name, &target);
    const auto stored = manifest_.tensors.find(target.name);
    if (stored == manifest_.tensors.end()) {
      report.missing.push_back(target.name);
    } else if (stored->second.shape != target.shape ||
               !safetensors::convertible(safetensors::element_type_of(stored->second.dtype),
                                         target.dtype)) {
      report.unequal.push_back(fmt::format("{}: {} in the checkpoint, {} in the model", target.name,
                                           describe(stored->second.dtype, stored->second.shape),
                                           describe(target.dtype, target.shape)));
    }
  }
  for (const auto& [name, tensor] : manifest_.tensors) {
    if (wanted(name) && !by_name.contains(name)) report.unexpected.push_back(name);
  }
  report.raise(path_.string());

  Progress progress("Loaded", static_cast<int64_t>(targets.size()));
  for (const NamedTensor& target : targets) {
    read(target);
    progress.step();
  }
}

}  // namespace rhea::checkpoint
