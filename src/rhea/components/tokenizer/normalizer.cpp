// The normalizers of tokenizer.json, by ICU where they are Unicode's.
#include "rhea/components/tokenizer/normalizer.h"

#include <nlohmann/json.hpp>

#include <unicode/bytestream.h>
#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/unistr.h>

#include <memory>
#include <string_view>

#include "rhea/base/error.h"
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

void strip(bool left, bool right, std::string& text) {
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
}

}  // namespace

std::function<void(std::string&)> make_replace(const JsonField& component) {
  const JsonField pattern = component["pattern"];
  const bool literal = pattern.object().contains("String");
  const std::string source = pattern[literal ? "String" : "Regex"].string();
  if (source.empty()) pattern.fail("an empty pattern matches nothing");
  const auto regex = std::make_shared<const Regex>(source, literal);
  return [regex, content = component["content"].string()](std::string& text) {
    RegexScratch scratch;
    std::vector<Range> matches;
    regex->find_all(text, scratch, matches);
    if (matches.empty()) return;
    std::string result;
    size_t at = 0;
    for (const Range& match : matches) {
      result.append(text, at, match.begin - at).append(content);
      check_growth(text.size(), result.size());
      at = match.end;
    }
    text = result.append(text, at);
  };
}

void Normalizer::apply(std::string& text) const {
  const size_t before = text.size();
  for (const auto& step : steps_) {
    step(text);
    check_growth(before, text.size());
  }
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
    steps_.emplace_back([form](std::string& text) { to_unicode_form(*form, text); });
  } else if (type == "Lowercase") {
    steps_.emplace_back([](std::string& text) {
      std::string result;
      icu::UnicodeString::fromUTF8(text).toLower(icu::Locale::getRoot()).toUTF8String(result);
      text = std::move(result);
    });
  } else if (type == "Strip") {
    const bool left = field["strip_left"].boolean_or(true);
    const bool right = field["strip_right"].boolean_or(true);
    steps_.emplace_back([left, right](std::string& text) { strip(left, right, text); });
  } else if (type == "Prepend") {
    steps_.emplace_back([prefix = field["prepend"].string()](std::string& text) {
      if (!text.empty()) text.insert(0, prefix);
    });
  } else if (type == "Replace") {
    steps_.push_back(make_replace(field));
  } else {
    field.fail("normalizer type \"" + type +
               "\" is not supported (NFC, NFD, NFKC, NFKD, Lowercase, Strip, Prepend, Replace, "
               "Sequence are)");
  }
  description_ += (description_.empty() ? "" : ", ") + type;
}

}  // namespace rhea::tokenizer
