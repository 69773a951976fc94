// PCRE2 behind Regex.
#include "rhea/components/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "rhea/base/error.h"
#include "rhea/components/tokenizer/regex_syntax.h"
#include "rhea/components/tokenizer/utf8.h"

namespace rhea::tokenizer {
namespace {

constexpr size_t kJitStackStart = 32 * 1024;
constexpr size_t kJitStackLimit = 4 * 1024 * 1024;

std::string error_text(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

struct RegexScratch::Impl {
  pcre2_match_data* match = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = pcre2_jit_stack_create(kJitStackStart, kJitStackLimit, nullptr);
  Impl() { pcre2_jit_stack_assign(context, nullptr, stack); }
  ~Impl() {
    pcre2_match_data_free(match);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
};

RegexScratch::RegexScratch() : impl_(std::make_unique<Impl>()) {}
RegexScratch::~RegexScratch() = default;
RegexScratch::RegexScratch(RegexScratch&&) noexcept = default;
RegexScratch& RegexScratch::operator=(RegexScratch&&) noexcept = default;

struct Regex::Impl {
  pcre2_code* code = nullptr;
  uint32_t matches_empty = 0;  // whether an empty match is possible
  ~Impl() { pcre2_code_free(code); }
};

Regex::Regex(const std::string& pattern, bool literal)
    : pattern_(pattern), impl_(std::make_unique<Impl>()) {
  const std::string spelled = literal ? pattern : to_pcre2(pattern);
  const uint32_t options =
      PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C);
  int code = 0;
  PCRE2_SIZE offset = 0;
  impl_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(spelled.data()), spelled.size(), options,
                              &code, &offset, nullptr);
  if (impl_->code == nullptr)
    throw Error("regular expression \"{}\": {} at character {}", spelled, error_text(code), offset);
  pcre2_pattern_info(impl_->code, PCRE2_INFO_MATCHEMPTY, &impl_->matches_empty);
  // Without JIT (refused by the system or the architecture) the interpreter gives the same matches,
  // only slower.
  pcre2_jit_compile(impl_->code, PCRE2_JIT_COMPLETE);
}
Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

void Regex::find_all(std::string_view text, RegexScratch& scratch,
                     std::vector<Range>& matches) const {
  if (text.empty()) return;
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  pcre2_match_data* match = scratch.impl_->match;
  const PCRE2_SIZE* where = pcre2_get_ovector_pointer(match);
  const size_t first = matches.size();
  size_t at = 0;
  while (at < text.size() || (at == text.size() && impl_->matches_empty != 0)) {
    const int rc = pcre2_match(impl_->code, subject, text.size(), at, PCRE2_NO_UTF_CHECK, match,
                               scratch.impl_->context);
    if (rc == PCRE2_ERROR_NOMATCH) return;
    if (rc < 0)
      throw Error("regular expression \"{}\" on a text of {} bytes, from byte {}: {}", pattern_,
                  text.size(), at, error_text(rc));
    // \K in a look-ahead can put the begin of a match behind its end or before the last match.
    if (where[1] < at || where[0] > where[1] ||
        (matches.size() > first && where[0] < matches.back().end))
      throw Error("regular expression \"{}\" gives matches that do not move forward", pattern_);
    if (where[0] == where[1] && matches.size() > first && matches.back().end == where[1]) {
      // No empty match right behind another one: go on at the next character.
      if (at >= text.size()) return;
      at += decode_code_point(text, at).length;
      continue;
    }
    matches.push_back({where[0], where[1]});
    at = where[1];
  }
}

}  // namespace rhea::tokenizer
