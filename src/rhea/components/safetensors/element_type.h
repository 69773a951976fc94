// Element types of the safetensors format, which are more than Rhea computes with, and exact
// conversions to Rhea's.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "rhea/base/dtype.h"

namespace rhea::safetensors {

enum class ElementType : uint8_t {
  F64,
  F32,
  F16,
  BF16,
  I64,
  I32,
  I16,
  I8,
  U64,
  U32,
  U16,
  U8,
  BOOL,
  F8_E4M3,
  F8_E5M2,
  F8_E8M0,
  F8_E4M3FNUZ,
  F8_E5M2FNUZ,
  F6_E2M3,
  F6_E3M2,
  F4,
  C64
};

// Bits of one element: 4 and 6 for types of which several share a byte.
int64_t element_bits(ElementType type);
// The spelling of the file format: "F32", "F8_E4M3", ...
std::string_view element_type_name(ElementType type);
// Inverse of element_type_name; nullopt for a name that the format does not have.
std::optional<ElementType> parse_element_type(std::string_view name);

bool is_float(ElementType type);

ElementType element_type_of(DType dtype);
// The dtype with the same bytes; nullopt for a type that Rhea only reads (I16, F8_E4M3, ...) or
// only passes on (F6_E2M3, F6_E3M2, C64).
std::optional<DType> same_dtype(ElementType type);

// True when convert() accepts the pair: float to float, integer or bool to integer or bool. A byte
// of F4 holds two elements, the low nibble first.
bool convertible(ElementType from, DType to);
// Converts to.size() / dtype_size(to_dtype) elements. Floats are rounded once, to nearest even, and
// NaN stays NaN; an integer that does not fit and a pair that is not convertible throw Error.
// Neither buffer needs to be aligned.
void convert(ElementType from_type, std::span<const std::byte> from, DType to_dtype,
             std::span<std::byte> to);

}  // namespace rhea::safetensors
