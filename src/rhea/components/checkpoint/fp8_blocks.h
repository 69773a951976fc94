// Weights of published FP8 checkpoints: `X` in an 8-bit float with `X_scale_inv`, one scale for
// each block of rows and columns.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "rhea/components/safetensors/reader.h"

namespace rhea::checkpoint {

inline std::string scale_name(const std::string& weight) { return weight + "_scale_inv"; }
bool is_fp8(const safetensors::TensorView& tensor);
// `quantization_config.weight_block_size` of the folder's config.json, 128 without one. Throws
// Error for blocks that are not square.
int64_t fp8_block_size(const std::filesystem::path& folder);
// value * scale of its block, rounded once to `dtype`; blocks at the right and lower edge are
// cropped. Throws Error naming both tensors when the shapes do not fit.
void dequantize_fp8_blocks(const safetensors::TensorView& weight,
                           const safetensors::TensorView& scale, int64_t block, DType dtype,
                           std::span<std::byte> out);

}  // namespace rhea::checkpoint
