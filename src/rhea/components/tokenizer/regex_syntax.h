// Oniguruma's spelling of regular expressions, which tokenizer.json uses, in PCRE2's.
#pragma once
#include <string>

namespace rhea::tokenizer {

// The same expression for PCRE2 with PCRE2_UTF, PCRE2_UCP and PCRE2_MULTILINE. Throws Error for
// what PCRE2 has no form of: a class inside a class, `&&`.
std::string to_pcre2(const std::string& pattern);

}  // namespace rhea::tokenizer
