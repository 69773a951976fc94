// Block scales.
#include "rhea/components/checkpoint/fp8_blocks.h"

#include <nlohmann/json.hpp>

#include "rhea/base/error.h"
#include "rhea/base/json_depth.h"

namespace rhea::checkpoint {

using safetensors::ElementType;
using safetensors::TensorView;

bool is_fp8(const TensorView& tensor) {
  return tensor.dtype == ElementType::F8_E4M3 || tensor.dtype == ElementType::F8_E5M2;
}

int64_t fp8_block_size(const std::filesystem::path& folder) {
  constexpr int64_t kDefault = 128, kLargest = 1 << 20;
  const auto path = folder / "config.json";
  if (!std::filesystem::exists(path)) return kDefault;
  const std::string text = read_file(path);
  check_json_depth(text, path.string());
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) throw Error("{} is not a JSON object", path.string());
  const auto quantization = json.find("quantization_config");
  if (quantization == json.end() || !quantization->is_object() ||
      !quantization->contains("weight_block_size"))
    return kDefault;
  const auto& size = (*quantization)["weight_block_size"];
  const bool square = size.is_array() && size.size() == 2 && size[0].is_number_unsigned() &&
                      size[0] == size[1] && size[0] > 0 && size[0] <= kLargest;
  if (!square)
    throw Error("{}: weight_block_size {} is not two equal numbers in [1, {}]", path.string(),
                size.dump(), kLargest);
  return size[0].get<int64_t>();
}

void dequantize_fp8_blocks(const TensorView& weight, const TensorView& scale, int64_t block,
                           DType dtype, std::span<std::byte> out) {
  const bool fits =
      weight.shape.size() == 2 &&
      scale.shape == std::vector{div_up(weight.shape[0], block), div_up(weight.shape[1], block)};
  if (!fits || !safetensors::is_float(scale.dtype))
    throw Error("'{}' is {}, '{}' is {}: not one scale for each block of {} x {}", weight.name,
                weight.describe(), scale.name, scale.describe(), block, block);
  std::vector<float> values = safetensors::read_vector<float>(weight);
  const std::vector<float> scales = safetensors::read_vector<float>(scale);
  const int64_t columns = weight.shape[1];
  for (int64_t r = 0; r < weight.shape[0]; ++r) {
    for (int64_t c = 0; c < columns; ++c)
      values[static_cast<size_t>(r * columns + c)] *=
          scales[static_cast<size_t>(r / block * scale.shape[1] + c / block)];
  }
  safetensors::convert(ElementType::F32, std::as_bytes(std::span(values)), dtype, out);
}

}  // namespace rhea::checkpoint
