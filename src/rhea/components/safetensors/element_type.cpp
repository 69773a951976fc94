// Names, sizes and conversions of the format's element types.
#include "rhea/components/safetensors/element_type.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "rhea/base/error.h"
#include "rhea/components/safetensors/low_bit.h"

namespace rhea::safetensors {
namespace {

// Opaque types are listed and passed on, but have no values here: complex numbers, and the six-bit
// floats, whose order of bits the format leaves open.
enum class Kind { real, integer, opaque };

struct Row {
  std::string_view name;
  int bits;
  Kind kind;
  std::optional<DType> dtype;
};

constexpr std::array<Row, 22> kRows = {{
    {"F64", 64, Kind::real, DType::f64},          {"F32", 32, Kind::real, DType::f32},
    {"F16", 16, Kind::real, DType::f16},          {"BF16", 16, Kind::real, DType::bf16},
    {"I64", 64, Kind::integer, DType::i64},       {"I32", 32, Kind::integer, DType::i32},
    {"I16", 16, Kind::integer, std::nullopt},     {"I8", 8, Kind::integer, std::nullopt},
    {"U64", 64, Kind::integer, std::nullopt},     {"U32", 32, Kind::integer, std::nullopt},
    {"U16", 16, Kind::integer, std::nullopt},     {"U8", 8, Kind::integer, DType::u8},
    {"BOOL", 8, Kind::integer, DType::boolean},   {"F8_E4M3", 8, Kind::real, std::nullopt},
    {"F8_E5M2", 8, Kind::real, std::nullopt},     {"F8_E8M0", 8, Kind::real, std::nullopt},
    {"F8_E4M3FNUZ", 8, Kind::real, std::nullopt}, {"F8_E5M2FNUZ", 8, Kind::real, std::nullopt},
    {"F6_E2M3", 6, Kind::opaque, std::nullopt},   {"F6_E3M2", 6, Kind::opaque, std::nullopt},
    {"F4", 4, Kind::real, std::nullopt},          {"C64", 64, Kind::opaque, std::nullopt},
}};

const Row& row(ElementType type) { return kRows[static_cast<size_t>(type)]; }

template <class T>
T load(const std::byte* data, int64_t i) {
  T value;
  std::memcpy(&value, data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <class T>
void store(std::byte* data, int64_t i, T value) {
  std::memcpy(data + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

// f64 to f32 so that a second rounding to 16 bits is right: an inexact result gets its last bit set
// (round to odd).
float to_odd_f32(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  if (std::isnan(value) || back == value || std::isinf(value)) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::fabs(back) > std::fabs(value)) --bits;  // now rounded toward zero
  return std::bit_cast<float>(bits | 1U);
}

const std::array<float, 256>& byte_values(ElementType type) {
  switch (type) {
    case ElementType::F8_E4M3:
      return e4m3_values();
    case ElementType::F8_E5M2:
      return e5m2_values();
    case ElementType::F8_E4M3FNUZ:
      return e4m3fnuz_values();
    case ElementType::F8_E5M2FNUZ:
      return e5m2fnuz_values();
    default:
      return e8m0_values();
  }
}

// One loop for each pair of types, so that the wide ones vectorise.
template <class To, class Load>
void convert_each(std::byte* to, int64_t count, const Load& load_one) {
  for (int64_t i = 0; i < count; ++i) store<To>(to, i, static_cast<To>(load_one(i)));
}

template <class To>
void convert_floats(ElementType type, const std::byte* from, std::byte* to, int64_t count) {
  switch (type) {
    case ElementType::F64:
      return convert_each<To>(to, count, [from](int64_t i) {
        const double value = load<double>(from, i);
        if constexpr (sizeof(To) == 2)
          return to_odd_f32(value);
        else
          return value;
      });
    case ElementType::F32:
      return convert_each<To>(to, count, [from](int64_t i) { return load<float>(from, i); });
    case ElementType::BF16:
      return convert_each<To>(
          to, count, [from](int64_t i) { return static_cast<float>(load<bf16>(from, i)); });
    case ElementType::F16:
      return convert_each<To>(to, count,
                              [from](int64_t i) { return static_cast<float>(load<f16>(from, i)); });
    case ElementType::F4:
      return convert_each<To>(to, count, [from](int64_t i) {
        return kE2m1Values[load<uint8_t>(from, i / 2) >> (i % 2 * 4) & 15];
      });
    default:
      return convert_each<To>(to, count, [from, &values = byte_values(type)](int64_t i) {
        return values[load<uint8_t>(from, i)];
      });
  }
}

// Value as a 64-bit pattern; `negative` tells -1 from 2^64-1.
struct Integer {
  uint64_t bits;
  bool negative;
};
template <class T>
Integer widen(T value) {
  return {static_cast<uint64_t>(value), value < T{}};
}

Integer load_integer(ElementType type, const std::byte* data, int64_t i) {
  switch (type) {
    case ElementType::I64:
      return widen(load<int64_t>(data, i));
    case ElementType::I32:
      return widen(load<int32_t>(data, i));
    case ElementType::I16:
      return widen(load<int16_t>(data, i));
    case ElementType::I8:
      return widen(load<int8_t>(data, i));
    case ElementType::U64:
      return widen(load<uint64_t>(data, i));
    case ElementType::U32:
      return widen(load<uint32_t>(data, i));
    case ElementType::U16:
      return widen(load<uint16_t>(data, i));
    case ElementType::U8:
      return widen(load<uint8_t>(data, i));
    default:
      return widen(static_cast<uint8_t>(load<uint8_t>(data, i) != 0));
  }
}

template <class To>
void convert_integers(ElementType type, const std::byte* from, DType to_dtype, std::byte* to,
                      int64_t count) {
  const uint64_t limit =
      to_dtype == DType::boolean ? 1 : static_cast<uint64_t>(std::numeric_limits<To>::max());
  for (int64_t i = 0; i < count; ++i) {
    const Integer value = load_integer(type, from, i);
    const bool fits = value.negative ? static_cast<int64_t>(value.bits) >=
                                           static_cast<int64_t>(std::numeric_limits<To>::min())
                                     : value.bits <= limit;
    if (!fits) {
      throw Error("element {} is {}{}, which does not fit {}", i, value.negative ? "-" : "",
                  value.negative ? 0 - value.bits : value.bits, dtype_name(to_dtype));
    }
    store<To>(to, i, static_cast<To>(value.bits));
  }
}

}  // namespace

int64_t element_bits(ElementType type) { return row(type).bits; }
std::string_view element_type_name(ElementType type) { return row(type).name; }
std::optional<DType> same_dtype(ElementType type) { return row(type).dtype; }

std::optional<ElementType> parse_element_type(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<ElementType>(i);
  }
  return std::nullopt;
}

bool is_float(ElementType type) { return row(type).kind == Kind::real; }

ElementType element_type_of(DType dtype) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].dtype == dtype) return static_cast<ElementType>(i);
  }
  RHEA_CHECK(false, "dtype {} has no element type", dtype_name(dtype));
}

bool convertible(ElementType from, DType to) {
  return row(from).kind == (rhea::is_float(to) ? Kind::real : Kind::integer);
}

void convert(ElementType from_type, std::span<const std::byte> from, DType to_dtype,
             std::span<std::byte> to) {
  const auto count = static_cast<int64_t>(to.size()) / dtype_size(to_dtype);
  RHEA_CHECK(static_cast<int64_t>(from.size()) * 8 == count * element_bits(from_type),
             "{} bytes of {} for {} elements", from.size(), element_type_name(from_type), count);
  if (!convertible(from_type, to_dtype)) {
    throw Error("cannot convert {} to {}: {}", element_type_name(from_type), dtype_name(to_dtype),
                row(from_type).kind == Kind::opaque
                    ? "values of this type are not read"
                    : "one holds numbers with a fraction, the other integers");
  }
  if (same_dtype(from_type) == to_dtype) {
    if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
    return;
  }
  switch (to_dtype) {
    case DType::f32:
      return convert_floats<float>(from_type, from.data(), to.data(), count);
    case DType::bf16:
      return convert_floats<bf16>(from_type, from.data(), to.data(), count);
    case DType::f16:
      return convert_floats<f16>(from_type, from.data(), to.data(), count);
    case DType::f64:
      return convert_floats<double>(from_type, from.data(), to.data(), count);
    case DType::i32:
      return convert_integers<int32_t>(from_type, from.data(), to_dtype, to.data(), count);
    case DType::i64:
      return convert_integers<int64_t>(from_type, from.data(), to_dtype, to.data(), count);
    default:
      return convert_integers<uint8_t>(from_type, from.data(), to_dtype, to.data(), count);
  }
}

}  // namespace rhea::safetensors
