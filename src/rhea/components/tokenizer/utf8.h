// UTF-8 through ICU: validation, one code point at a time; and the byte alphabet of byte-level
// tokenizers.
#pragma once
#include <unicode/utf8.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rhea::tokenizer {

struct CodePoint {
  char32_t value = 0;
  size_t length = 0;  // bytes
};

// Code point that begins at text[at]; `text` is valid UTF-8 and at < text.size().
inline CodePoint decode_code_point(std::string_view text, size_t at) {
  size_t end = at;
  UChar32 value = 0;
  U8_NEXT_UNSAFE(text.data(), end, value);
  return {static_cast<char32_t>(value), end - at};
}
// Code point that ends before text[end], end > 0.
CodePoint decode_code_point_before(std::string_view text, size_t end);
void append_utf8(std::string& out, char32_t code_point);

// Offset of the first byte that is not part of valid UTF-8 (overlong forms and surrogates are not);
// npos: all valid.
size_t find_invalid_utf8(std::string_view text);
// Each maximal ill-formed part replaced by U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

// Unicode White_Space, and what counts as part of a word (letters, marks, digits, connectors).
bool is_white_space(char32_t code_point);
bool is_word(char32_t code_point);

// The alphabet of byte-level BPE: each byte is written as one printable character, so that a
// vocabulary is readable text.
char32_t byte_to_char(uint8_t byte);
std::optional<uint8_t> char_to_byte(char32_t code_point);
std::string bytes_to_alphabet(std::string_view bytes);
// Nothing if the text holds a character outside the alphabet.
std::optional<std::string> alphabet_to_bytes(std::string_view text);

}  // namespace rhea::tokenizer
