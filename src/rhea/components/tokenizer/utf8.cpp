// UTF-8 and the byte alphabet.
#include "rhea/components/tokenizer/utf8.h"

#include <unicode/uchar.h>

#include <cstring>

namespace rhea::tokenizer {
namespace {

// ICU's macros keep differences of bytes, which C++ computes as int, in bytes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"

// Steps over the code point at `at`, or over what one U+FFFD stands for: the longest prefix of a
// well-formed sequence, at least one byte (table 3-7 of the Unicode standard). False for the
// latter.
bool step(std::string_view text, size_t& at) {
  UChar32 value = 0;
  U8_NEXT(text.data(), at, text.size(), value);
  return value >= 0;
}

size_t begin_of_code_point(std::string_view text, size_t end) {
  U8_BACK_1_UNSAFE(text.data(), end);
  return end;
}

#pragma GCC diagnostic pop

struct ByteAlphabet {
  std::array<char32_t, 256> to_char{};
  std::array<int16_t, 512> to_byte{};
};

// Printable Latin-1 stands for itself; the other 68 bytes, in order, become U+0100, U+0101, ...
constexpr ByteAlphabet make_byte_alphabet() {
  ByteAlphabet alphabet;
  for (auto& entry : alphabet.to_byte) entry = -1;
  char32_t next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    const char32_t code_point = printable ? static_cast<char32_t>(byte) : next++;
    alphabet.to_char[byte] = code_point;
    alphabet.to_byte[code_point] = static_cast<int16_t>(byte);
  }
  return alphabet;
}
constexpr ByteAlphabet kByteAlphabet = make_byte_alphabet();

}  // namespace

CodePoint decode_code_point_before(std::string_view text, size_t end) {
  return decode_code_point(text, begin_of_code_point(text, end));
}

void append_utf8(std::string& out, char32_t code_point) {
  char bytes[U8_MAX_LENGTH];
  size_t length = 0;
  U8_APPEND_UNSAFE(bytes, length, code_point);
  out.append(bytes, length);
}

size_t find_invalid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    if (at + 8 <= text.size()) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + at, sizeof word);
      if ((word & 0x8080808080808080ULL) == 0) {
        at += 8;
        continue;
      }
    }
    const size_t begin = at;
    if (!step(text, at)) return begin;
  }
  return std::string_view::npos;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (true) {
    const size_t bad = find_invalid_utf8(text);
    result.append(text.substr(0, bad));
    if (bad == std::string_view::npos) return result;
    append_utf8(result, 0xfffd);
    size_t end = bad;
    step(text, end);
    text.remove_prefix(end);
  }
}

bool is_white_space(char32_t code_point) {
  return u_isUWhiteSpace(static_cast<UChar32>(code_point)) != 0;
}

bool is_word(char32_t code_point) {
  const auto c = static_cast<UChar32>(code_point);
  if (code_point < 0x80) return u_isalnum(c) != 0 || c == '_';
  return (U_GET_GC_MASK(c) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0 ||
         u_hasBinaryProperty(c, UCHAR_ALPHABETIC) || u_hasBinaryProperty(c, UCHAR_JOIN_CONTROL);
}

char32_t byte_to_char(uint8_t byte) { return kByteAlphabet.to_char[byte]; }

std::optional<uint8_t> char_to_byte(char32_t code_point) {
  if (code_point >= kByteAlphabet.to_byte.size() || kByteAlphabet.to_byte[code_point] < 0)
    return std::nullopt;
  return static_cast<uint8_t>(kByteAlphabet.to_byte[code_point]);
}

std::string bytes_to_alphabet(std::string_view bytes) {
  std::string result;
  for (const char byte : bytes) append_utf8(result, byte_to_char(static_cast<uint8_t>(byte)));
  return result;
}

std::optional<std::string> alphabet_to_bytes(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_code_point(text, at);
    const std::optional<uint8_t> byte = char_to_byte(c.value);
    if (!byte) return std::nullopt;
    result.push_back(static_cast<char>(*byte));
    at += c.length;
  }
  return result;
}

}  // namespace rhea::tokenizer
