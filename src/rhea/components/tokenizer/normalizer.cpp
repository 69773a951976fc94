// The normalizers of tokenizer.json, by ICU where they are Unicode's.
#include "rhea/components/tokenizer/normalizer.h"

#include <nlohmann/json.hpp>

#include <unicode/bytestream.h>
#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <memory>
#include <string_view>

#include "rhea/base/error.h"
#include "rhea/components/tokenizer/characters.h"
#include "rhea/components/tokenizer/charsmap.h"
#include "rhea/components/tokenizer/regex.h"
#include "rhea/components/tokenizer/utf8.h"

namespace rhea::tokenizer {
namespace {

// Replacements that follow each other multiply. A tokenizer that makes more of a text than this is
// damaged, and would fill the memory.
void check_growth(size_t before, size_t after) {
  constexpr size_t kAlwaysFine = size_t{16} << 20, kMostTimes = 64;
  if (after > kAlwaysFine && after / kMostTimes > before)
    throw Error(
        "the tokenizer's normalizer makes more than {} bytes of a text of {}; tokenizer.json is "
        "damaged",
        after, before);
}

const icu::Normalizer2* unicode_form(std::string_view type) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* form = nullptr;
  if (type == "NFC") form = icu::Normalizer2::getNFCInstance(status);
  if (type == "NFD") form = icu::Normalizer2::getNFDInstance(status);
  if (type == "NFKC") form = icu::Normalizer2::getNFKCInstance(status);
  if (type == "NFKD") form = icu::Normalizer2::getNFKDInstance(status);
  if (U_FAILURE(status))
    throw Error("ICU cannot give the normalization form {}: {}", type, u_errorName(status));
  return form;
}

void to_unicode_form(const icu::Normalizer2& form, std::string& text) {
  UErrorCode status = U_ZERO_ERROR;
  if (form.isNormalizedUTF8(text, status) && U_SUCCESS(status)) return;
  std::string result;
  icu::StringByteSink<std::string> sink(&result);
  form.normalizeUTF8(0, text, sink, nullptr, status);
  if (U_FAILURE(status))
    throw Error("ICU cannot normalize a text of {} bytes: {}", text.size(), u_errorName(status));
  text = std::move(result);
}

bool strip(bool left, bool right, std::string& text) {
  size_t begin = 0;
  size_t end = text.size();
  while (left && begin < end) {
    const CodePoint c = decode_code_point(text, begin);
    if (!is_white_space(c.value)) break;
    begin += c.length;
  }
  while (right && begin < end) {
    const CodePoint c = decode_code_point_before(text, end);
    if (!is_white_space(c.value)) break;
    end -= c.length;
  }
  text = text.substr(begin, end - begin);
  return begin > 0;
}

// Each character becomes what f(code point, its bytes, out) appends. True where the first one
// became nothing.
template <class F>
bool map_characters(std::string& text, F&& f) {
  std::string result;
  result.reserve(text.size());
  bool front_removed = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_code_point(text, at);
    f(c.value, std::string_view(text).substr(at, c.length), result);
    if (at == 0) front_removed = result.empty();
    at += c.length;
  }
  text = std::move(result);
  return front_removed;
}

template <class F>
bool remove_if(std::string& text, F&& is_removed) {
  return map_characters(text, [&](char32_t c, std::string_view bytes, std::string& out) {
    if (!is_removed(c)) out += bytes;
  });
}

// Character by character, as the published vocabularies were made: a final sigma is not seen.
bool lowercase(std::string& text) {
  return map_characters(text, [](char32_t c, std::string_view bytes, std::string& out) {
    if (c < 0x80) {
      out.push_back(static_cast<char>(u_tolower(static_cast<UChar32>(c))));
    } else if (u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_CHANGES_WHEN_LOWERCASED)) {
      icu::UnicodeString(static_cast<UChar32>(c)).toLower(icu::Locale::getRoot()).toUTF8String(out);
    } else {
      out += bytes;
    }
  });
}

bool clean_bert_text(std::string& text) {
  return map_characters(text, [](char32_t c, std::string_view bytes, std::string& out) {
    if (c == 0 || c == 0xfffd || is_bert_control(c)) return;
    if (is_white_space(c)) {
      out.push_back(' ');
    } else {
      out += bytes;
    }
  });
}

bool space_out_ideographs(std::string& text) {
  return map_characters(text, [](char32_t c, std::string_view bytes, std::string& out) {
    if (is_bert_ideograph(c)) {
      out.append(" ").append(bytes).append(" ");
    } else {
      out += bytes;
    }
  });
}

// The table of Google's translation models: these controls go, these become a space.
bool apply_nmt(std::string& text) {
  return map_characters(text, [](char32_t c, std::string_view bytes, std::string& out) {
    const bool removed = (c >= 0x01 && c <= 0x08) || c == 0x0b || (c >= 0x0e && c <= 0x1f) ||
                         c == 0x7f || c == 0x8f || c == 0x9f;
    const bool space = c == 0x09 || c == 0x0a || c == 0x0c || c == 0x0d || c == 0x1680 ||
                       (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                       c == 0xfeff || c == 0xfffd;
    if (removed) return;
    if (space) {
      out.push_back(' ');
    } else {
      out += bytes;
    }
  });
}

}  // namespace

std::function<bool(std::string&)> make_replace(const JsonField& component) {
  const JsonField pattern = component["pattern"];
  const bool literal = pattern.object().contains("String");
  const auto regex =
      std::make_shared<const Regex>(pattern[literal ? "String" : "Regex"].string(), literal);
  return [regex, content = component["content"].string()](std::string& text) {
    RegexScratch scratch;
    std::vector<Range> matches;
    regex->find_all(text, scratch, matches);
    if (matches.empty()) return false;
    std::string result;
    size_t at = 0;
    for (const Range& match : matches) {
      result.append(text, at, match.begin - at).append(content);
      check_growth(text.size(), result.size());
      at = match.end;
    }
    const bool front_removed = content.empty() && matches.front().begin == 0;
    text = result.append(text, at);
    return front_removed;
  };
}

bool Normalizer::apply(std::string& text) const {
  const size_t before = text.size();
  bool front_removed = false;
  for (const Step& step : steps_) {
    front_removed = step(text) || front_removed;
    check_growth(before, text.size());
  }
  return front_removed;
}

void Normalizer::add_bert(const JsonField& field) {
  const bool lower = field["lowercase"].boolean_or(true);
  if (field["clean_text"].boolean_or(true)) steps_.emplace_back(clean_bert_text);
  if (field["handle_chinese_chars"].boolean_or(true)) steps_.emplace_back(space_out_ideographs);
  if (field["strip_accents"].boolean_or(lower))
    steps_.emplace_back([form = unicode_form("NFD")](std::string& text) {
      to_unicode_form(*form, text);
      return remove_if(text, is_nonspacing_mark);
    });
  if (lower) steps_.emplace_back(lowercase);
}

void Normalizer::add(const JsonField& field, int depth) {
  if (field.is_null()) return;
  const std::string type = field["type"].string();
  if (type == "Sequence") {
    if (depth == kMaxComponentDepth) field.fail("Sequences are nested too deeply");
    const JsonField list = field["normalizers"];
    for (size_t i = 0; i < list.array().size(); ++i) add(list.item(i), depth + 1);
    return;
  }
  if (const icu::Normalizer2* form = unicode_form(type)) {
    steps_.emplace_back([form](std::string& text) {
      to_unicode_form(*form, text);
      return false;
    });
  } else if (type == "Lowercase") {
    steps_.emplace_back(lowercase);
  } else if (type == "Strip") {
    const bool left = field["strip_left"].boolean_or(true);
    const bool right = field["strip_right"].boolean_or(true);
    steps_.emplace_back([left, right](std::string& text) { return strip(left, right, text); });
  } else if (type == "StripAccents") {
    steps_.emplace_back([](std::string& text) { return remove_if(text, is_mark); });
  } else if (type == "BertNormalizer") {
    add_bert(field);
  } else if (type == "Nmt") {
    steps_.emplace_back(apply_nmt);
  } else if (type == "Precompiled") {
    steps_.emplace_back(
        [map = std::make_shared<const Charsmap>(field["precompiled_charsmap"])](std::string& text) {
          map->apply(text);
          return false;
        });
  } else if (type == "ByteLevel") {
    steps_.emplace_back([](std::string& text) {
      text = bytes_to_alphabet(text);
      return false;
    });
  } else if (type == "Prepend") {
    steps_.emplace_back([prefix = field["prepend"].string()](std::string& text) {
      if (!text.empty()) text.insert(0, prefix);
      return false;
    });
  } else if (type == "Replace") {
    steps_.push_back(make_replace(field));
  } else {
    field.fail("normalizer type \"" + type +
               "\" is not one of the format (NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, "
               "BertNormalizer, Nmt, Precompiled, ByteLevel, Prepend, Replace, Sequence)");
  }
  description_ += (description_.empty() ? "" : ", ") + type;
}

}  // namespace rhea::tokenizer
