// UTF-8 and the byte alphabet.
#include "rhea/components/tokenizer/utf8.h"

#include <unicode/uchar.h>

#include <cstring>

namespace rhea::tokenizer {
namespace {

// Length of the well-formed sequence at `at`, 0 where there is none (table 3-7 of the Unicode
// standard).
size_t sequence_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) -> unsigned {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  const auto tail = [&](size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  if (first < 0xe0) return tail(1) ? 2 : 0;
  if (first < 0xf0) {
    if (!tail(1) || !tail(2)) return 0;
    if (first == 0xe0 && byte(1) < 0xa0) return 0;
    if (first == 0xed && byte(1) > 0x9f) return 0;
    return 3;
  }
  if (!tail(1) || !tail(2) || !tail(3)) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return 4;
}

// Bytes from `at` that one U+FFFD stands for: the longest prefix of a well-formed sequence, at
// least one byte.
size_t ill_formed_length(std::string_view text, size_t at) {
  const unsigned first = static_cast<unsigned char>(text[at]);
  if (first < 0xc2 || first > 0xf4) return 1;
  const size_t need = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  size_t length = 1;
  while (length < need && at + length < text.size()) {
    const unsigned byte = static_cast<unsigned char>(text[at + length]);
    unsigned low = 0x80;
    unsigned high = 0xbf;
    if (length == 1) {
      if (first == 0xe0) low = 0xa0;
      if (first == 0xed) high = 0x9f;
      if (first == 0xf0) low = 0x90;
      if (first == 0xf4) high = 0x8f;
    }
    if (byte < low || byte > high) break;
    ++length;
  }
  return length;
}

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
  size_t begin = end - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xc0U) == 0x80U) --begin;
  return decode_code_point(text, begin);
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto push = [&](char32_t byte) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(byte)));
  };
  if (code_point < 0x80) {
    push(code_point);
  } else if (code_point < 0x800) {
    push(0xc0U | (code_point >> 6));
    push(0x80U | (code_point & 0x3fU));
  } else if (code_point < 0x10000) {
    push(0xe0U | (code_point >> 12));
    push(0x80U | ((code_point >> 6) & 0x3fU));
    push(0x80U | (code_point & 0x3fU));
  } else {
    push(0xf0U | (code_point >> 18));
    push(0x80U | ((code_point >> 12) & 0x3fU));
    push(0x80U | ((code_point >> 6) & 0x3fU));
    push(0x80U | (code_point & 0x3fU));
  }
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
    const size_t length = sequence_length(text, at);
    if (length == 0) return at;
    at += length;
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
    text.remove_prefix(bad + ill_formed_length(text, bad));
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
