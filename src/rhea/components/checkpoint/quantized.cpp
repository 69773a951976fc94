// Decoding by blocks.
#include "rhea/components/checkpoint/quantized.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/safetensors/low_bit.h"

namespace rhea::checkpoint {
namespace {

using safetensors::ElementType;
using safetensors::TensorView;

constexpr int64_t kGroup = 32;  // MXFP4 codes of one scale

[[noreturn]] void misfit(const CodedTensor& tensor, std::string_view rule) {
  throw Error("'{}' is {}, '{}' is {}: {}", tensor.values->name, tensor.values->describe(),
              tensor.scales->name, tensor.scales->describe(), rule);
}

std::vector<int64_t> fp8_shape(const CodedTensor& tensor, int64_t block) {
  const auto& shape = tensor.values->shape;
  const bool fits =
      shape.size() == 2 &&
      tensor.scales->shape == std::vector{div_up(shape[0], block), div_up(shape[1], block)};
  if (!fits || !safetensors::is_float(tensor.scales->dtype))
    misfit(tensor, fmt::format("not one scale for each block of {} x {}", block, block));
  return shape;
}

// [..., R, G] of both MXFP4 layouts.
std::vector<int64_t> mxfp4_groups(const CodedTensor& tensor) {
  std::vector<int64_t> codes = tensor.scales->shape;
  constexpr int64_t kBytes = kGroup / 2;
  if (tensor.coding == Coding::mxfp4_swapped)
    codes.push_back(kBytes);
  else if (!codes.empty() && __builtin_mul_overflow(codes.back(), kBytes, &codes.back()))
    misfit(tensor, "more groups than any tensor has");
  if (tensor.values->dtype != ElementType::U8 || tensor.scales->dtype != ElementType::U8 ||
      tensor.scales->shape.size() < 2 || tensor.values->shape != codes)
    misfit(tensor, "not 16 bytes of MXFP4 codes for each scale");
  return tensor.scales->shape;
}

void decode_fp8(const CodedTensor& tensor, int64_t block, DType dtype, std::span<std::byte> out) {
  const auto shape = fp8_shape(tensor, block);
  const int64_t columns = shape[1], num_scales = tensor.scales->shape[1];
  const std::vector<float> scales = safetensors::read_vector<float>(*tensor.scales);
  const auto& codes = tensor.values->dtype == ElementType::F8_E4M3 ? safetensors::e4m3_values()
                                                                   : safetensors::e5m2_values();
  std::vector<float> row(static_cast<size_t>(columns));
  for (int64_t r = 0; r < shape[0]; ++r) {
    const std::byte* in = tensor.values->bytes.data() + r * columns;
    const float* row_scales = scales.data() + r / block * num_scales;
    for (int64_t c = 0; c < columns; ++c)
      row[static_cast<size_t>(c)] = codes[std::to_integer<size_t>(in[c])] * row_scales[c / block];
    const auto row_bytes = static_cast<size_t>(columns * dtype_size(dtype));
    safetensors::convert(ElementType::F32, std::as_bytes(std::span(row)), dtype,
                         out.subspan(static_cast<size_t>(r) * row_bytes, row_bytes));
  }
}

// Values of the 32 codes of one scale.
void decode_group(const std::byte* codes, uint8_t scale, float* out) {
  const float factor = safetensors::e8m0_values()[scale];
  for (size_t i = 0; i < kGroup; ++i)
    out[i] = safetensors::kE2m1Values[std::to_integer<size_t>(codes[i / 2]) >> (i % 2 * 4) & 15] *
             factor;
}

void decode_mxfp4(const CodedTensor& tensor, DType dtype, std::span<std::byte> out) {
  const auto shape = mxfp4_groups(tensor);
  const int64_t groups = shape.back(), rows = shape[shape.size() - 2];
  const int64_t columns = groups * kGroup, item = dtype_size(dtype);
  if (rows == 0 || columns == 0) return;
  const int64_t num_rows = static_cast<int64_t>(tensor.scales->bytes.size()) / groups;
  const bool swapped = tensor.coding == Coding::mxfp4_swapped;
  std::vector<float> row(static_cast<size_t>(columns));
  std::vector<std::byte> converted(static_cast<size_t>(columns * item));
  for (int64_t r = 0; r < num_rows; ++r) {
    for (int64_t g = 0; g < groups; ++g)
      decode_group(
          tensor.values->bytes.data() + (r * groups + g) * kGroup / 2,
          std::to_integer<uint8_t>(tensor.scales->bytes[static_cast<size_t>(r * groups + g)]),
          row.data() + g * kGroup);
    safetensors::convert(ElementType::F32, std::as_bytes(std::span(row)), dtype, converted);
    const int64_t matrix = r / rows * rows * columns;  // first element of this matrix
    for (int64_t c = 0; c < (swapped ? columns : 1); ++c) {
      const int64_t to = swapped ? matrix + c * rows + r % rows : r * columns;
      const int64_t size = swapped ? item : columns * item;
      std::copy_n(converted.data() + c * item, size, out.data() + to * item);
    }
  }
}

}  // namespace

bool is_fp8(const TensorView& tensor) {
  return tensor.dtype == ElementType::F8_E4M3 || tensor.dtype == ElementType::F8_E5M2;
}

QuantizationConfig read_quantization(const std::filesystem::path& folder) {
  constexpr int64_t kLargest = 1 << 20;
  QuantizationConfig found;
  const auto path = folder / "config.json";
  if (!std::filesystem::exists(path)) return found;
  const auto config = parse_json(read_file(path), path.string());
  if (!config.is_object()) throw Error("{} is not a JSON object", path.string());
  const auto quantization = config.find("quantization_config");
  if (quantization == config.end() || !quantization->is_object()) return found;
  const auto method = quantization->value("quant_method", nlohmann::json());
  if (method != "fp8" && method != "mxfp4" && method != "compressed-tensors")
    throw Error("{}: weights quantized by {} are not read; read are fp8 (in blocks) and mxfp4",
                path.string(), method.dump());
  const auto size = quantization->find("weight_block_size");
  if (size == quantization->end() || size->is_null()) return found;
  const bool square = size->is_array() && size->size() == 2 && (*size)[0].is_number_unsigned() &&
                      (*size)[0] == (*size)[1] && (*size)[0] > 0 && (*size)[0] <= kLargest;
  if (!square)
    throw Error("{}: weight_block_size {} is not two equal numbers in [1, {}]", path.string(),
                size->dump(), kLargest);
  found.fp8_block_size = (*size)[0].get<int64_t>();
  return found;
}

std::vector<int64_t> CodedTensor::shape(int64_t fp8_block_size) const {
  if (coding == Coding::plain) return values->shape;
  if (coding == Coding::fp8_blocks) return fp8_shape(*this, fp8_block_size);
  auto shape = mxfp4_groups(*this);
  shape.back() *= kGroup;
  if (coding == Coding::mxfp4_swapped) std::swap(shape.back(), shape[shape.size() - 2]);
  return shape;
}

CodedTensor find_coded(const safetensors::Weights& weights, const std::string& name) {
  const auto pair = [&](Coding coding, const TensorView* values, const std::string& scales) {
    const TensorView* found = weights.find(scales);
    if (found == nullptr)
      throw Error("{}: '{}' is {}, but '{}' is not there", weights.path().string(), values->name,
                  values->describe(), scales);
    return CodedTensor{coding, values, found};
  };
  if (const TensorView* tensor = weights.find(name)) {
    if (is_fp8(*tensor)) return pair(Coding::fp8_blocks, tensor, name + "_scale_inv");
    return {Coding::plain, tensor, nullptr};
  }
  if (const TensorView* blocks = weights.find(name + "_blocks"))
    return pair(Coding::mxfp4_swapped, blocks, name + "_scales");
  if (const TensorView* packed = weights.find(name + "_packed"))
    return pair(Coding::mxfp4_packed, packed, name + "_scale");
  return {};
}

void decode(const CodedTensor& tensor, int64_t fp8_block_size, DType dtype,
            std::span<std::byte> out) {
  switch (tensor.coding) {
    case Coding::plain:
      return safetensors::read_as(*tensor.values, dtype, out);
    case Coding::fp8_blocks:
      return decode_fp8(tensor, fp8_block_size, dtype, out);
    default:
      return decode_mxfp4(tensor, dtype, out);
  }
}

}  // namespace rhea::checkpoint
