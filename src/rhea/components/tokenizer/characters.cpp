#include "rhea/components/tokenizer/characters.h"

#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include "rhea/base/error.h"

namespace rhea::tokenizer {
namespace {

bool in_categories(char32_t code_point, uint32_t mask) {
  return (U_GET_GC_MASK(static_cast<UChar32>(code_point)) & mask) != 0;
}

// The program that published vocabularies were made with knows categories as of Unicode 8 and
// scripts as of Unicode 9: to it, younger characters have none.
bool is_known_in(int unicode_version, char32_t code_point) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(code_point), age);
  return age[0] <= unicode_version;
}

bool in_old_categories(char32_t code_point, uint32_t mask) {
  return in_categories(code_point, mask) && is_known_in(8, code_point);
}

}  // namespace

bool is_mark(char32_t code_point) { return in_old_categories(code_point, U_GC_M_MASK); }
bool is_nonspacing_mark(char32_t code_point) { return in_old_categories(code_point, U_GC_MN_MASK); }
bool is_number(char32_t code_point) { return in_categories(code_point, U_GC_N_MASK); }

bool is_punctuation(char32_t code_point) {
  if (code_point < 0x80) return in_categories(code_point, U_GC_P_MASK | U_GC_S_MASK);
  return in_old_categories(code_point, U_GC_P_MASK);
}

bool is_bert_control(char32_t code_point) {
  if (code_point == '\t' || code_point == '\n' || code_point == '\r') return false;
  return in_old_categories(code_point, U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK);
}

bool is_bert_ideograph(char32_t code_point) {
  const auto in = [&](char32_t first, char32_t last) {
    return first <= code_point && code_point <= last;
  };
  return in(0x4e00, 0x9fff) || in(0x3400, 0x4dbf) || in(0x20000, 0x2a6df) || in(0x2a700, 0x2b73f) ||
         in(0x2b740, 0x2b81f) || in(0x2b920, 0x2ceaf) || in(0xf900, 0xfaff) || in(0x2f800, 0x2fa1f);
}

int32_t script_run(char32_t code_point) {
  if (code_point == ' ' || !is_known_in(9, code_point)) return -1;
  // The mark that lengthens a vowel of katakana has no script of its own.
  if (code_point == 0x30fc) return USCRIPT_HAN;
  // Characters that Unicode has given another script since.
  if (code_point == 0x0589) return USCRIPT_COMMON;
  if (code_point == 0x0953 || code_point == 0x0954) return USCRIPT_DEVANAGARI;
  UErrorCode status = U_ZERO_ERROR;
  const UScriptCode script = uscript_getScript(static_cast<UChar32>(code_point), &status);
  if (U_FAILURE(status))
    throw Error("ICU cannot give the script of U+{:04X}: {}", static_cast<uint32_t>(code_point),
                u_errorName(status));
  if (script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA) return USCRIPT_HAN;
  return script == USCRIPT_UNKNOWN ? -1 : script;
}

}  // namespace rhea::tokenizer
