// One data file for this rank, then the manifest.
#include "rhea/components/checkpoint/step_writer.h"

#include <algorithm>
#include <cstring>

#include "rhea/base/error.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/checkpoint/checksum.h"
#include "rhea/components/checkpoint/hf_folder.h"
#include "rhea/components/safetensors/writer.h"

namespace rhea::checkpoint {
namespace {

constexpr const char* kDataName = "rank-00000.safetensors";

// Index of the first element whose exponent bits are all ones (NaN, infinity), or -1.
template <class Bits>
int64_t find_non_finite(std::span<const std::byte> bytes, Bits exponent) {
  const auto count = static_cast<int64_t>(bytes.size() / sizeof(Bits));
  constexpr int64_t kBlock = 4096;  // the test per block vectorises, the search in it need not
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, count);
    const auto at = [&](int64_t i) {
      Bits bits;
      std::memcpy(&bits, bytes.data() + i * static_cast<int64_t>(sizeof bits), sizeof bits);
      return static_cast<Bits>(bits & exponent) == exponent;
    };
    int any = 0;
    for (int64_t i = begin; i < end; ++i) any |= static_cast<int>(at(i));
    if (any == 0) continue;
    for (int64_t i = begin; i < end; ++i) {
      if (at(i)) return i;
    }
  }
  return -1;
}

DType stored_dtype(const NamedTensor& tensor, const StepContent& content) {
  return content.export_dtype ? export_dtype(tensor.name, tensor.dtype, *content.export_dtype)
                              : tensor.dtype;
}

void write_data(const std::filesystem::path& folder, const StepContent& content,
                Manifest& manifest) {
  std::vector<safetensors::TensorSpec> specs;
  for (const NamedTensor& tensor : content.tensors)
    specs.push_back(
        {tensor.name, safetensors::element_type_of(stored_dtype(tensor, content)), tensor.shape});
  safetensors::Writer writer(folder / kDataName, specs);
  std::vector<std::byte> converted;
  for (size_t i = 0; i < specs.size(); ++i) {
    const NamedTensor& tensor = content.tensors[i];
    require_finite(tensor);
    const DType dtype = stored_dtype(tensor, content);
    const uint64_t begin = writer.file_offset(i);
    Chunk chunk{
        std::vector<int64_t>(tensor.shape.size(), 0), tensor.shape, kDataName, begin, begin, {}};
    // In blocks that have a checksum each.
    const int64_t item = dtype_size(tensor.dtype);
    const auto block = static_cast<int64_t>(kChecksumBlock) / dtype_size(dtype);
    for (int64_t at = 0; at < tensor.num_elements(); at += block) {
      const int64_t count = std::min(block, tensor.num_elements() - at);
      auto bytes =
          tensor.bytes().subspan(static_cast<size_t>(at * item), static_cast<size_t>(count * item));
      if (dtype != tensor.dtype) {
        converted.resize(static_cast<size_t>(count * dtype_size(dtype)));
        safetensors::convert(safetensors::element_type_of(tensor.dtype), bytes, dtype, converted);
        bytes = converted;
      }
      writer.write(i, bytes);
      chunk.checksums.push_back(xxh64(bytes));
      chunk.end += bytes.size();
    }
    manifest.tensors[tensor.name] = {dtype, tensor.shape, {std::move(chunk)}};
  }
  writer.finish();
  manifest.files[kDataName] = writer.file_size();
}

}  // namespace

void require_finite(const NamedTensor& tensor) {
  const auto bytes = tensor.bytes();
  int64_t bad = -1;
  switch (tensor.dtype) {
    case DType::f32:
      bad = find_non_finite<uint32_t>(bytes, 0x7f800000U);
      break;
    case DType::bf16:
      bad = find_non_finite<uint16_t>(bytes, 0x7f80);
      break;
    case DType::f16:
      bad = find_non_finite<uint16_t>(bytes, 0x7c00);
      break;
    case DType::f64:
      bad = find_non_finite<uint64_t>(bytes, 0x7ff0000000000000U);
      break;
    default:
      break;
  }
  if (bad < 0) return;
  throw ExitError(
      ExitCode::non_finite,
      fmt::format("element {} of {} is {}: nothing was written, older checkpoints are as they were",
                  bad, tensor.name, load_as_f64(bytes.data(), tensor.dtype, bad)));
}

uint64_t bytes_needed(const StepContent& content) {
  // What the manifest and the header hold for a tensor besides its data, generously.
  constexpr uint64_t kPerTensor = 1024;
  constexpr uint64_t kPerChecksum = 24;
  uint64_t total = 64 * kPerTensor;
  for (const NamedTensor& tensor : content.tensors) {
    const auto bytes =
        static_cast<uint64_t>(tensor.num_elements() * dtype_size(stored_dtype(tensor, content)));
    total += bytes + kPerTensor + bytes / kChecksumBlock * kPerChecksum;
  }
  for (const auto* texts : {&content.state, &content.files})
    for (const auto& [name, part] : *texts) total += name.size() + part.size();
  return total;
}

void write_step(const std::filesystem::path& path, const StepContent& content) {
  require_space(path.parent_path(), bytes_needed(content), content.full_disk_remedy);
  const auto fill = [&](const std::filesystem::path& temporary) {
    Manifest manifest;
    manifest.kind = content.kind;
    manifest.step = content.step;
    manifest.state = content.state;
    write_data(temporary, content, manifest);
    for (const auto& [name, text] : content.files) write_file_atomic(temporary / name, text);
    write_file_atomic(temporary / kManifestName, format_manifest(manifest));
  };
  make_folder(path, fill, content.existing);
}

void Snapshot::take(std::span<const NamedTensor> tensors) {
  constexpr int64_t kAlignment = 64;
  int64_t needed = 0;
  for (const NamedTensor& tensor : tensors) needed += round_up(tensor.num_bytes(), kAlignment);
  if (needed > capacity_) {
    memory_.reset();  // never both at once
    memory_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(needed));
    capacity_ = needed;
  }
  tensors_.assign(tensors.begin(), tensors.end());
  int64_t offset = 0;
  for (NamedTensor& tensor : tensors_) {
    const auto bytes = tensor.bytes();
    if (!bytes.empty()) std::memcpy(memory_.get() + offset, bytes.data(), bytes.size());
    tensor.data = memory_.get() + offset;
    offset += round_up(tensor.num_bytes(), kAlignment);
  }
}

}  // namespace rhea::checkpoint
