// Regular expressions as tokenizer.json spells them (Oniguruma syntax), run by PCRE2 with its JIT.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rhea::tokenizer {

struct Range {
  size_t begin = 0;
  size_t end = 0;
};

// Working memory of matching; one per thread.
class RegexScratch {
 public:
  RegexScratch();
  ~RegexScratch();
  RegexScratch(RegexScratch&&) noexcept;
  RegexScratch& operator=(RegexScratch&&) noexcept;

 private:
  friend class Regex;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class Regex {
 public:
  // Throws Error with the pattern and PCRE2's reason. `literal`: the pattern is plain text.
  explicit Regex(const std::string& pattern, bool literal = false);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // Appends all matches in `text` (valid UTF-8), left to right (an empty text has none); empty ones
  // too, but not right behind another match. Throws Error when the pattern needs more steps than a
  // sane one would.
  void find_all(std::string_view text, RegexScratch& scratch, std::vector<Range>& matches) const;
  const std::string& pattern() const { return pattern_; }

 private:
  struct Impl;
  std::string pattern_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhea::tokenizer
