// Weights of published checkpoints in few bits: codes in one tensor, scales in another.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "rhea/components/safetensors/reader.h"

namespace rhea::checkpoint {

enum class Coding {
  plain,
  // X in an 8-bit float, X_scale_inv: one scale for each block of rows and columns (DeepSeek,
  // Qwen).
  fp8_blocks,
  // X_blocks U8 [..., R, G, 16] and X_scales U8 [..., R, G]: 32 codes of four bits for each scale,
  // 2^(scale - 127); the published tensor is [..., 32 G, R] (GPT-OSS).
  mxfp4_swapped,
  // X_packed U8 [..., R, 16 G] and X_scale U8 [..., R, G] of the same codes, not swapped
  // (compressed-tensors, mxfp4-pack-quantized).
  mxfp4_packed,
};

// What a config.json says of its weights. Throws Error naming a method that is not read (gptq, awq,
// bitsandbytes, ...) and blocks that are not square.
struct QuantizationConfig {
  int64_t fp8_block_size = 128;
};
QuantizationConfig read_quantization(const std::filesystem::path& folder);

// One stored tensor with what belongs to it.
struct CodedTensor {
  Coding coding = Coding::plain;
  const safetensors::TensorView* values = nullptr;
  const safetensors::TensorView* scales = nullptr;  // null when plain

  // Of the values that it stands for. Throws Error naming both tensors when codes and scales do not
  // fit each other.
  std::vector<int64_t> shape(int64_t fp8_block_size) const;
};

// True for an 8-bit float.
bool is_fp8(const safetensors::TensorView& tensor);
// The tensor stored for `name`: as it is, or in one of the codings. `values` is null when there is
// none; `where` names the folder when the scales are missing.
CodedTensor find_coded(const safetensors::Weights& weights, const std::string& name);

// Values in `dtype`, each product rounded once, row-major. Blocks at the right and lower edge of an
// FP8 tensor are cropped. Needs little memory besides `out`.
void decode(const CodedTensor& tensor, int64_t fp8_block_size, DType dtype,
            std::span<std::byte> out);

}  // namespace rhea::checkpoint
