#include "rhea/components/tokenizer/charsmap.h"

#include <unicode/brkiter.h>
#include <unicode/utext.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "rhea/base/error.h"
#include "rhea/components/tokenizer/base64.h"
#include "rhea/components/tokenizer/utf8.h"

namespace rhea::tokenizer {
namespace {

// A unit of the double array: label of the edge that leads to it, offset to its children, whether
// one of them holds a value.
bool has_leaf(uint32_t unit) { return ((unit >> 8) & 1U) != 0; }
uint32_t value(uint32_t unit) { return unit & 0x7fffffffU; }
uint32_t label(uint32_t unit) { return unit & 0x800000ffU; }
uint32_t offset(uint32_t unit) { return (unit >> 10) << ((unit & (1U << 9)) >> 6); }

uint32_t read_u32(std::string_view bytes, size_t at) {
  uint32_t result = 0;
  for (size_t i = 0; i < 4; ++i)
    result |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return result;
}

void check(UErrorCode status, const char* what) {
  if (U_FAILURE(status)) throw Error("ICU cannot {}: {}", what, u_errorName(status));
}

// Calls f(begin, end) for each user-perceived character.
template <class F>
void for_each_grapheme(const std::string& text, F&& f) {
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> breaks(
      icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
  check(status, "find the characters of a text");
  UText* view = utext_openUTF8(nullptr, text.data(), static_cast<int64_t>(text.size()), &status);
  const std::unique_ptr<UText, decltype(&utext_close)> owned(view, utext_close);
  breaks->setText(view, status);
  check(status, "read a text");
  int32_t begin = breaks->first();
  for (int32_t end = breaks->next(); end != icu::BreakIterator::DONE;
       begin = end, end = breaks->next())
    f(static_cast<size_t>(begin), static_cast<size_t>(end));
}

}  // namespace

Charsmap::Charsmap(const JsonField& field) {
  const auto bytes = decode_base64(field.string());
  if (!bytes) field.fail("not base64");
  if (bytes->size() < 4) field.fail("too short to hold a table");
  const size_t trie_bytes = read_u32(*bytes, 0);
  if (trie_bytes % 4 != 0 || trie_bytes == 0 || trie_bytes > bytes->size() - 4)
    field.fail("says that its table has " + std::to_string(trie_bytes) + " bytes, but holds " +
               std::to_string(bytes->size() - 4));
  for (size_t at = 4; at < 4 + trie_bytes; at += 4) trie_.push_back(read_u32(*bytes, at));
  replacements_ = bytes->substr(4 + trie_bytes);
  // A replacement that the file cuts off ends where the file does.
  replacements_.push_back('\0');
  for (size_t at = 0; at < replacements_.size(); at += std::strlen(&replacements_[at]) + 1)
    if (find_invalid_utf8(&replacements_[at]) != std::string_view::npos)
      field.fail("the replacement at byte " + std::to_string(at) + " is not UTF-8");
}

const char* Charsmap::find(std::string_view key) const {
  size_t node = offset(trie_[0]);
  for (const char byte : key) {
    if (byte == '\0') return nullptr;
    node ^= static_cast<unsigned char>(byte);
    if (node >= trie_.size()) return nullptr;
    const uint32_t unit = trie_[node];
    if (label(unit) != static_cast<unsigned char>(byte)) return nullptr;
    node ^= offset(unit);
    if (!has_leaf(unit)) continue;
    if (node >= trie_.size()) return nullptr;
    const size_t at = value(trie_[node]);
    // An offset into the middle of a character would make text that is not UTF-8.
    const bool usable = at < replacements_.size() &&
                        (at == 0 || replacements_[at - 1] == '\0' ||
                         find_invalid_utf8(&replacements_[at]) == std::string_view::npos);
    return usable ? &replacements_[at] : nullptr;
  }
  return nullptr;
}

void Charsmap::append(std::string_view character, std::string& out) const {
  if (const char* replacement = find(character)) {
    out += replacement;
  } else {
    out += character;
  }
}

void Charsmap::apply(std::string& text) const {
  constexpr size_t kLongestWhole = 5;
  std::string result;
  result.reserve(text.size());
  const std::string_view all = text;
  // In ASCII only CR LF is more than one code point.
  const bool simple = std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x80 && c != '\r';
  });
  if (simple) {
    for (size_t at = 0; at < all.size(); ++at) append(all.substr(at, 1), result);
  } else {
    for_each_grapheme(text, [&](size_t begin, size_t end) {
      const std::string_view grapheme = all.substr(begin, end - begin);
      const char* whole = grapheme.size() <= kLongestWhole ? find(grapheme) : nullptr;
      if (whole != nullptr) {
        result += whole;
        return;
      }
      for (size_t at = begin; at < end;) {
        const size_t length = decode_code_point(all, at).length;
        append(all.substr(at, length), result);
        at += length;
      }
    });
  }
  text = std::move(result);
}

}  // namespace rhea::tokenizer
