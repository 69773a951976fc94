// SHA-256 (FIPS 180-4), to tell whether a text is the one that a committed result was made from.
#pragma once
#include <string>
#include <string_view>

namespace rhea::tokenizer {

// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view data);

}  // namespace rhea::tokenizer
