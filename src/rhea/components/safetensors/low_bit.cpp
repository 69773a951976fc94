// The tables, made once.
#include "rhea/components/safetensors/low_bit.h"

#include <cmath>
#include <limits>

namespace rhea::safetensors {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Value of sign, exponent and mantissa; an exponent of 0 is subnormal.
float value_of(int code, int mantissa_bits, int bias) {
  const int exponent = (code & 0x7f) >> mantissa_bits;
  const int mantissa = code & ((1 << mantissa_bits) - 1);
  const float value = exponent == 0
                          ? std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits)
                          : std::ldexp(static_cast<float>(mantissa + (1 << mantissa_bits)),
                                       exponent - bias - mantissa_bits);
  return (code & 0x80) != 0 ? -value : value;
}

template <class F>
std::array<float, 256> table(const F& value) {
  std::array<float, 256> made{};
  for (int code = 0; code < 256; ++code) made[static_cast<size_t>(code)] = value(code);
  return made;
}

}  // namespace

const std::array<float, 256>& e4m3_values() {
  static const auto values =
      table([](int code) { return (code & 0x7f) == 0x7f ? kNan : value_of(code, 3, 7); });
  return values;
}

const std::array<float, 256>& e5m2_values() {
  static const auto values = table([](int code) {
    const int magnitude = code & 0x7f;
    if (magnitude > 0x7c) return kNan;
    const float infinity = std::numeric_limits<float>::infinity();
    if (magnitude == 0x7c) return (code & 0x80) != 0 ? -infinity : infinity;
    return value_of(code, 2, 15);
  });
  return values;
}

const std::array<float, 256>& e4m3fnuz_values() {
  static const auto values =
      table([](int code) { return code == 0x80 ? kNan : value_of(code, 3, 8); });
  return values;
}

const std::array<float, 256>& e5m2fnuz_values() {
  static const auto values =
      table([](int code) { return code == 0x80 ? kNan : value_of(code, 2, 16); });
  return values;
}

const std::array<float, 256>& e8m0_values() {
  static const auto values =
      table([](int code) { return code == 0xff ? kNan : std::ldexp(1.0F, code - 127); });
  return values;
}

}  // namespace rhea::safetensors
