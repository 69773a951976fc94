// Values of the floating point types of at most eight bits.
#pragma once
#include <array>

namespace rhea::safetensors {

// By the code of a byte. 1 sign, 4 exponent, 3 mantissa bits, no infinity; 1, 5 and 2, as the upper
// byte of a half; their FNUZ kinds (one zero, one NaN, no infinity); a power of two,
// 2^(code - 127), 255 is NaN.
const std::array<float, 256>& e4m3_values();
const std::array<float, 256>& e5m2_values();
const std::array<float, 256>& e4m3fnuz_values();
const std::array<float, 256>& e5m2fnuz_values();
const std::array<float, 256>& e8m0_values();

// By a nibble: 0 .5 1 1.5 2 3 4 6, then the negatives.
inline constexpr std::array<float, 16> kE2m1Values = {0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,
                                                      4.0F,  6.0F,  -0.0F, -0.5F, -1.0F, -1.5F,
                                                      -2.0F, -3.0F, -4.0F, -6.0F};

}  // namespace rhea::safetensors
