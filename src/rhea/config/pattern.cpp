#include "rhea/config/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <string>

#include "rhea/base/error.h"

namespace rhea::config {
namespace {

pcre2_code* native(void* code) { return static_cast<pcre2_code*>(code); }

std::string message(int code) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

void Pattern::FreeCode::operator()(Code* code) const {
  pcre2_code_free(native(static_cast<void*>(code)));
}

Pattern::Pattern(std::string_view text) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  void* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), PCRE2_UTF,
                             &error, &offset, nullptr);
  if (!code)
    throw Error("'{}' is no regular expression: {} at character {}", text, message(error), offset);
  code_.reset(static_cast<Code*>(code));
}

bool Pattern::found_in(std::string_view subject) const {
  pcre2_code* code = native(static_cast<void*>(code_.get()));
  const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> match(
      pcre2_match_data_create_from_pattern(code, nullptr), pcre2_match_data_free);
  const int result = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(subject.data()), subject.size(),
                                 0, 0, match.get(), nullptr);
  if (result == PCRE2_ERROR_NOMATCH) return false;
  if (result < 0) throw Error("regular expression on '{}': {}", subject, message(result));
  return true;
}

}  // namespace rhea::config
