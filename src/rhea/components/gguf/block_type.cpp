// The table of types. Layouts are little endian; d and m are halves that scale a block, indices
// follow the order of the values.
#include "rhea/components/gguf/block_type.h"

#include <algorithm>
#include <cstring>

#include "rhea/base/dtype.h"
#include "rhea/base/error.h"

namespace rhea::gguf {
namespace {

constexpr int kSmall = 32;   // values of a block with one scale
constexpr int kSuper = 256;  // values of a K block, which has scales of its own for each 16 or 32

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
float half(const std::byte* at) { return static_cast<float>(load<f16>(at)); }
int byte_at(const std::byte* at, int i) { return std::to_integer<int>(at[i]); }
// Nibble i of 32: the low halves of 16 bytes, then the high ones.
int nibble(const std::byte* bytes, int i) { return byte_at(bytes, i % 16) >> (i / 16 * 4) & 15; }

void from_f32(const std::byte* in, float* out) { *out = load<float>(in); }
void from_f16(const std::byte* in, float* out) { *out = half(in); }
void from_bf16(const std::byte* in, float* out) { *out = static_cast<float>(load<bf16>(in)); }

// d[2] q[16]
void from_q4_0(const std::byte* in, float* out) {
  const float d = half(in);
  for (int i = 0; i < kSmall; ++i) out[i] = d * static_cast<float>(nibble(in + 2, i) - 8);
}

// d[2] m[2] q[16]
void from_q4_1(const std::byte* in, float* out) {
  const float d = half(in), m = half(in + 2);
  for (int i = 0; i < kSmall; ++i) out[i] = d * static_cast<float>(nibble(in + 4, i)) + m;
}

// Five bits: nibbles and, above them, bit i of a 32-bit word.
int five_bits(const std::byte* high, const std::byte* low, int i) {
  return nibble(low, i) | static_cast<int>(load<uint32_t>(high) >> i & 1) << 4;
}

// d[2] high[4] q[16]
void from_q5_0(const std::byte* in, float* out) {
  const float d = half(in);
  for (int i = 0; i < kSmall; ++i)
    out[i] = d * static_cast<float>(five_bits(in + 2, in + 6, i) - 16);
}

// d[2] m[2] high[4] q[16]
void from_q5_1(const std::byte* in, float* out) {
  const float d = half(in), m = half(in + 2);
  for (int i = 0; i < kSmall; ++i)
    out[i] = d * static_cast<float>(five_bits(in + 4, in + 8, i)) + m;
}

// d[2] q[32], signed
void from_q8_0(const std::byte* in, float* out) {
  const float d = half(in);
  for (int i = 0; i < kSmall; ++i) out[i] = static_cast<float>(load<int8_t>(in + 2 + i)) * d;
}

// Two bits of value i: 32 bytes hold 128 values, their lowest bits the first 32.
int two_bits(const std::byte* bytes, int i) {
  return byte_at(bytes, i / 128 * 32 + i % 32) >> (i / 32 % 4 * 2) & 3;
}

// scales[16] (low nibble d, high nibble m of 16 values) q[64] d[2] m[2]
void from_q2_k(const std::byte* in, float* out) {
  const float d = half(in + 80), m = half(in + 82);
  for (int i = 0; i < kSuper; ++i) {
    const int scale = byte_at(in, i / 16);
    const float dl = d * static_cast<float>(scale & 15);
    const float ml = m * static_cast<float>(scale >> 4);
    out[i] = dl * static_cast<float>(two_bits(in + 16, i)) - ml;
  }
}

// high[32] q[64] scales[12] d[2]. A high bit that is clear takes 4 off. Scales have six bits less
// 32: nibbles in eight bytes, two bits more in four.
void from_q3_k(const std::byte* in, float* out) {
  const std::byte* scales = in + 96;
  const float d = half(in + 108);
  for (int i = 0; i < kSuper; ++i) {
    const int k = i / 16;
    const int low = byte_at(scales, k % 8) >> (k / 8 * 4) & 15;
    const int high = byte_at(scales, 8 + k % 4) >> (k / 4 * 2) & 3;
    const float dl = d * static_cast<float>((low | high << 4) - 32);
    const int bit = byte_at(in, i % 32) >> (i / 32) & 1;
    out[i] = dl * static_cast<float>(two_bits(in + 32, i) - (bit != 0 ? 0 : 4));
  }
}

// Scale and minimum k of eight, six bits each in 12 bytes.
struct ScaleMin {
  float scale, min;
};
ScaleMin scale_min(const std::byte* packed, int k) {
  const auto at = [packed](int i) { return byte_at(packed, i); };
  if (k < 4) return {static_cast<float>(at(k) & 63), static_cast<float>(at(k + 4) & 63)};
  return {static_cast<float>((at(k + 4) & 15) | (at(k - 4) >> 2 & 48)),
          static_cast<float>(at(k + 4) >> 4 | (at(k) >> 2 & 48))};
}

// Nibble i of a K block: 32 bytes hold 64 values.
int wide_nibble(const std::byte* bytes, int i) {
  return byte_at(bytes, i / 64 * 32 + i % 32) >> (i / 32 % 2 * 4) & 15;
}

// d[2] m[2] scales[12] q[128]
void from_q4_k(const std::byte* in, float* out) {
  const float d = half(in), m = half(in + 2);
  for (int i = 0; i < kSuper; ++i) {
    const ScaleMin s = scale_min(in + 4, i / 32);
    out[i] = d * s.scale * static_cast<float>(wide_nibble(in + 16, i)) - m * s.min;
  }
}

// d[2] m[2] scales[12] high[32] q[128]
void from_q5_k(const std::byte* in, float* out) {
  const float d = half(in), m = half(in + 2);
  for (int i = 0; i < kSuper; ++i) {
    const ScaleMin s = scale_min(in + 4, i / 32);
    const int high = byte_at(in + 16, i % 32) >> (i / 32) & 1;
    const int q = wide_nibble(in + 48, i) | high << 4;
    out[i] = d * s.scale * static_cast<float>(q) - m * s.min;
  }
}

// q[128] high[64] scales[16] (signed) d[2]
void from_q6_k(const std::byte* in, float* out) {
  const float d = half(in + 208);
  for (int i = 0; i < kSuper; ++i) {
    const int low = byte_at(in, i / 128 * 64 + i % 64) >> (i / 64 % 2 * 4) & 15;
    const int q = (low | two_bits(in + 128, i) << 4) - 32;
    out[i] = d * static_cast<float>(load<int8_t>(in + 192 + i / 16)) * static_cast<float>(q);
  }
}

constexpr BlockType kTypes[] = {
    {0, "F32", 1, 4, from_f32},
    {1, "F16", 1, 2, from_f16},
    {2, "Q4_0", kSmall, 18, from_q4_0},
    {3, "Q4_1", kSmall, 20, from_q4_1},
    {6, "Q5_0", kSmall, 22, from_q5_0},
    {7, "Q5_1", kSmall, 24, from_q5_1},
    {8, "Q8_0", kSmall, 34, from_q8_0},
    {9, "Q8_1", kSmall, 40, nullptr},
    {10, "Q2_K", kSuper, 84, from_q2_k},
    {11, "Q3_K", kSuper, 110, from_q3_k},
    {12, "Q4_K", kSuper, 144, from_q4_k},
    {13, "Q5_K", kSuper, 176, from_q5_k},
    {14, "Q6_K", kSuper, 210, from_q6_k},
    {15, "Q8_K", kSuper, 292, nullptr},
    {16, "IQ2_XXS", kSuper, 66, nullptr},
    {17, "IQ2_XS", kSuper, 74, nullptr},
    {18, "IQ3_XXS", kSuper, 98, nullptr},
    {19, "IQ1_S", kSuper, 50, nullptr},
    {20, "IQ4_NL", kSmall, 18, nullptr},
    {21, "IQ3_S", kSuper, 110, nullptr},
    {22, "IQ2_S", kSuper, 82, nullptr},
    {23, "IQ4_XS", kSuper, 136, nullptr},
    {24, "I8", 1, 1, nullptr},
    {25, "I16", 1, 2, nullptr},
    {26, "I32", 1, 4, nullptr},
    {27, "I64", 1, 8, nullptr},
    {28, "F64", 1, 8, nullptr},
    {29, "IQ1_M", kSuper, 56, nullptr},
    {30, "BF16", 1, 2, from_bf16},
    {34, "TQ1_0", kSuper, 54, nullptr},
    {35, "TQ2_0", kSuper, 66, nullptr},
    {39, "MXFP4", kSmall, 17, nullptr},
};

}  // namespace

const BlockType* find_block_type(uint32_t id) {
  const auto* found =
      std::ranges::find_if(kTypes, [id](const BlockType& type) { return type.id == id; });
  return found == std::end(kTypes) ? nullptr : found;
}

std::string readable_types() {
  std::string list;
  for (const BlockType& type : kTypes)
    if (type.dequantize != nullptr)
      list += fmt::format("{}{}", list.empty() ? "" : ", ", type.name);
  return list;
}

void dequantize(const BlockType& type, std::span<const std::byte> blocks, std::span<float> out) {
  const int64_t count = static_cast<int64_t>(blocks.size()) / type.bytes;
  RHEA_CHECK(static_cast<int64_t>(out.size()) == count * type.elements,
             "{} blocks of {} into {} values", count, type.name, out.size());
  for (int64_t i = 0; i < count; ++i)
    type.dequantize(blocks.data() + i * type.bytes, out.data() + i * type.elements);
}

}  // namespace rhea::gguf
