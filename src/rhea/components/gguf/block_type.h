// Element types of GGUF files: blocks of numbers that share scales, and their values as f32.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rhea::gguf {

// One type of the format. `elements` values take `bytes` bytes; rows of a tensor are whole blocks.
struct BlockType {
  uint32_t id;
  std::string_view name;  // "Q4_K"
  int64_t elements;
  int64_t bytes;
  // Values of one block, with every product and sum rounded to f32 in the order of the format's
  // reference. Null: a type whose size is known, but which is not read.
  void (*dequantize)(const std::byte* block, float* out);
};

// Null for an id that the format does not have.
const BlockType* find_block_type(uint32_t id);
// Comma list of the types that are read, for messages.
std::string readable_types();

// Values of whole blocks: blocks.size() / type.bytes * type.elements of them. The type must be one
// that is read.
void dequantize(const BlockType& type, std::span<const std::byte> blocks, std::span<float> out);

}  // namespace rhea::gguf
