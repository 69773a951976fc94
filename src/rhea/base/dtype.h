// Element types of tensors, and the two 16-bit floating point formats with exact conversions.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace rhea {

// The element types, floating point first; `boolean` holds 0 and 1 in a byte.
enum class DType : uint8_t { f32, bf16, f16, f64, i32, i64, u8, boolean };
// How many of them there are.
inline constexpr int kNumDTypes = 8;

// Bytes of one element.
constexpr int64_t dtype_size(DType dtype) {
  constexpr int64_t sizes[kNumDTypes] = {4, 2, 2, 8, 4, 8, 1, 1};
  return sizes[static_cast<int>(dtype)];
}
// f32, bf16, f16 or f64.
constexpr bool is_float(DType dtype) { return dtype <= DType::f64; }
// "f32" "bf16" "f16" "f64" "i32" "i64" "u8" "bool"
std::string_view dtype_name(DType dtype);
// Accepts the short names and the long ones of configs (float32, bfloat16, float16, ...); throws
// Error naming the text.
DType parse_dtype(std::string_view text);

// bfloat16: upper half of an f32. Conversion rounds to nearest even; NaN stays NaN.
struct bf16 {
  uint16_t bits = 0;  // sign, exponent, mantissa
  bf16() = default;
  // Rounds to nearest even.
  explicit bf16(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    if ((u & 0x7fffffffU) > 0x7f800000U) {
      bits = static_cast<uint16_t>((u >> 16) | 0x40U);
    } else {
      bits = static_cast<uint16_t>((u + 0x7fffU + ((u >> 16) & 1U)) >> 16);
    }
  }
  // Exact.
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};
static_assert(sizeof(bf16) == 2);

// IEEE binary16. Conversion rounds to nearest even, overflow to infinity, subnormals kept; NaN
// stays NaN.
struct f16 {
  uint16_t bits = 0;  // sign, exponent, mantissa
  f16() = default;
  // Rounds to nearest even.
  explicit f16(float value);
  // Exact.
  explicit operator float() const;
};
static_assert(sizeof(f16) == 2);

// The DType of a C++ type: float, bf16, f16, double, int32_t, int64_t, uint8_t; any other counts as
// boolean.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>)
    return DType::f32;
  else if constexpr (std::is_same_v<T, bf16>)
    return DType::bf16;
  else if constexpr (std::is_same_v<T, f16>)
    return DType::f16;
  else if constexpr (std::is_same_v<T, double>)
    return DType::f64;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::i32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::i64;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::u8;
  else
    return DType::boolean;
}

// Calls f.template operator()<T>() with the C++ type of `dtype` (bool elements are uint8_t-sized
// `bool`).
template <class F>
decltype(auto) dispatch_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f.template operator()<float>();
    case DType::bf16:
      return f.template operator()<bf16>();
    case DType::f16:
      return f.template operator()<f16>();
    case DType::f64:
      return f.template operator()<double>();
    case DType::i32:
      return f.template operator()<int32_t>();
    case DType::i64:
      return f.template operator()<int64_t>();
    case DType::u8:
      return f.template operator()<uint8_t>();
    default:
      return f.template operator()<bool>();
  }
}

// Element i of a buffer as f64, and back with the rounding of the type (reference paths and tools,
// not for kernels).
double load_as_f64(const void* data, DType dtype, int64_t i);
void store_from_f64(void* data, DType dtype, int64_t i, double value);

}  // namespace rhea
