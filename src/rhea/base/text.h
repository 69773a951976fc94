// Small helpers for text that people read.
#pragma once
#include <cstdint>
#include <string>

namespace rhea {

// 1234567 -> "1,234,567"
std::string with_commas(int64_t value);

}  // namespace rhea
