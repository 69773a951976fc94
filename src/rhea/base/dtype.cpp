// Names and slow-path conversions of element types.
#include "rhea/base/dtype.h"

#include <cmath>

#include "rhea/base/error.h"

namespace rhea {

std::string_view dtype_name(DType dtype) {
  constexpr std::string_view names[kNumDTypes] = {"f32", "bf16", "f16", "f64",
                                                  "i32", "i64",  "u8",  "bool"};
  return names[static_cast<int>(dtype)];
}

DType parse_dtype(std::string_view text) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (text == dtype_name(static_cast<DType>(i))) return static_cast<DType>(i);
  }
  if (text == "float32") return DType::f32;
  if (text == "bfloat16") return DType::bf16;
  if (text == "float16") return DType::f16;
  if (text == "float64") return DType::f64;
  if (text == "int32") return DType::i32;
  if (text == "int64") return DType::i64;
  if (text == "uint8") return DType::u8;
  throw Error("unknown dtype '{}'; known: f32 bf16 f16 f64 i32 i64 u8 bool", text);
}

f16::f16(float value) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (u >> 16) & 0x8000U;
  const uint32_t magnitude = u & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {  // NaN
    bits = static_cast<uint16_t>(sign | 0x7e00U | ((magnitude >> 13) & 0x3ffU));
    return;
  }
  if (magnitude >= 0x477ff000U) {  // rounds to 65536 or above
    bits = static_cast<uint16_t>(sign | 0x7c00U);
    return;
  }
  if (magnitude < 0x38800000U) {  // subnormal or zero: the unit is 2^-24
    const float scaled = std::nearbyint(std::bit_cast<float>(magnitude) * 16777216.0F);
    bits = static_cast<uint16_t>(sign | static_cast<uint32_t>(scaled));
    return;
  }
  const uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
  bits = static_cast<uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
}

f16::operator float() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fU;
  const uint32_t mantissa = bits & 0x3ffU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13));
  return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (mantissa << 13));
}

double load_as_f64(const void* data, DType dtype, int64_t i) {
  return dispatch_dtype(dtype, [&]<class T>() -> double {
    const T value = static_cast<const T*>(data)[i];
    if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
      return static_cast<double>(static_cast<float>(value));
    else
      return static_cast<double>(value);
  });
}

void store_from_f64(void* data, DType dtype, int64_t i, double value) {
  dispatch_dtype(dtype, [&]<class T>() {
    T* out = static_cast<T*>(data);
    if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
      out[i] = T(static_cast<float>(value));
    else if constexpr (std::is_same_v<T, bool>)
      out[i] = value != 0;
    else if constexpr (std::is_floating_point_v<T>)
      out[i] = static_cast<T>(value);
    else  // modulo the range, as kernels on integers do, on every CPU
      out[i] = static_cast<T>(static_cast<int64_t>(value));
  });
}

}  // namespace rhea
