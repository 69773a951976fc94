#include "rhea/components/tokenizer/regex_syntax.h"

#include <string_view>
#include <utility>

#include "rhea/base/error.h"

namespace rhea::tokenizer {
namespace {

// What \w stands for inside a class. By itself it also takes the fractions and raised digits of
// Latin-1: Oniguruma has two tables.
constexpr const char* kWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
constexpr const char* kLatinWord = "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}";

class Translation {
 public:
  explicit Translation(const std::string& pattern) : pattern_(pattern) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      if (pattern_[at_] == '\\') {
        escape();
      } else if (pattern_[at_] == '[') {
        bracket();
      } else if (starts_with("(?")) {
        group();
      } else {
        result_.push_back(pattern_[at_++]);
      }
    }
    return std::move(result_);
  }

 private:
  bool starts_with(std::string_view text) const {
    return std::string_view(pattern_).substr(at_).starts_with(text);
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw Error("regular expression \"{}\": {} at byte {} is not supported", pattern_, what, at_);
  }

  // \uHHHH; false where it is something else.
  bool code_unit(std::string& out) {
    if (!starts_with("\\u") || at_ + 6 > pattern_.size()) return false;
    out += "\\x{" + pattern_.substr(at_ + 2, 4) + "}";
    at_ += 6;
    return true;
  }

  void escape() {
    if (at_ + 1 == pattern_.size() || code_unit(result_)) {
      if (at_ + 1 == pattern_.size()) result_.push_back(pattern_[at_++]);
      return;
    }
    const std::string word = std::string("[") + kWord + kLatinWord + "]";
    switch (pattern_[at_ + 1]) {
      // PCRE2 counts U+180E among \s; Oniguruma and Unicode's White_Space do not.
      case 's':
        result_ += "\\p{White_Space}";
        break;
      case 'S':
        result_ += "\\P{White_Space}";
        break;
      case 'w':
        result_ += word;
        break;
      case 'W':
        result_ += std::string("[^") + kWord + kLatinWord + "]";
        break;
      case 'b':
        result_ += "(?:(?<=" + word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word + "))";
        break;
      case 'B':
        result_ += "(?:(?<=" + word + ")(?=" + word + ")|(?<!" + word + ")(?!" + word + "))";
        break;
      case 'h':
        result_ += "[0-9a-fA-F]";
        break;
      case 'H':
        result_ += "[^0-9a-fA-F]";
        break;
      default:
        result_ += pattern_.substr(at_, 2);
        break;
    }
    at_ += 2;
  }

  // (?m:...) lets the dot match line ends; PCRE2 calls that s.
  void group() {
    size_t end = at_ + 2;
    while (end < pattern_.size() && (pattern_[end] == 'i' || pattern_[end] == 'm' ||
                                     pattern_[end] == 'x' || pattern_[end] == '-'))
      ++end;
    const bool options =
        end > at_ + 2 && end < pattern_.size() && (pattern_[end] == ':' || pattern_[end] == ')');
    for (; at_ < end; ++at_)
      result_.push_back(options && pattern_[at_] == 'm' ? 's' : pattern_[at_]);
  }

  void posix_class(std::string& members) {
    constexpr std::pair<std::string_view, const char*> kClasses[] = {
        {"[:alpha:]", "\\p{Alphabetic}"},
        {"[:digit:]", "\\p{Nd}"},
        {"[:alnum:]", "\\p{Alphabetic}\\p{Nd}"},
        {"[:upper:]", "\\p{Uppercase}"},
        {"[:lower:]", "\\p{Lowercase}"},
        {"[:space:]", "\\p{White_Space}"},
        {"[:word:]", kWord},
        {"[:xdigit:]", "0-9a-fA-F"}};
    for (const auto& [name, meaning] : kClasses) {
      if (!starts_with(name)) continue;
      members += meaning;
      at_ += name.size();
      return;
    }
    fail("a class inside a class");
  }

  void bracket() {
    ++at_;
    const bool negated = starts_with("^");
    if (negated) ++at_;
    std::string members;
    bool not_word = false;  // \W cannot stand among other members in PCRE2's terms
    for (bool first = true;; first = false) {
      if (at_ >= pattern_.size()) fail("a class without its end");
      if (pattern_[at_] == ']' && !first) break;
      if (pattern_[at_] == ']') {
        members += "\\]";
        ++at_;
      } else if (pattern_[at_] == '[') {
        posix_class(members);
      } else if (starts_with("&&")) {
        fail("the intersection of classes");
      } else if (pattern_[at_] == '\\' && at_ + 1 < pattern_.size()) {
        if (code_unit(members)) continue;
        const char escaped = pattern_[at_ + 1];
        if (escaped == 's') {
          members += "\\p{White_Space}";
        } else if (escaped == 'S') {
          members += "\\P{White_Space}";
        } else if (escaped == 'w') {
          members += kWord;
        } else if (escaped == 'W') {
          not_word = true;
        } else if (escaped == 'h') {
          members += "0-9a-fA-F";
        } else if (escaped == 'H') {
          fail("\\H inside a class");
        } else {
          members += pattern_.substr(at_, 2);
        }
        at_ += 2;
      } else {
        members.push_back(pattern_[at_++]);
      }
    }
    ++at_;
    if (!not_word) {
      result_ += (negated ? "[^" : "[") + members + "]";
      return;
    }
    // Everything that is no word character, and the members: or none of them.
    result_ += std::string("(?:") + (negated ? "(?=[" : "[^") + kWord + "]" + (negated ? ")" : "|");
    if (members.empty()) {
      result_ += negated ? "(?s:.))" : "(?!))";
    } else {
      result_ += (negated ? "[^" : "[") + members + "])";
    }
  }

  const std::string& pattern_;
  size_t at_ = 0;
  std::string result_;
};

}  // namespace

std::string to_pcre2(const std::string& pattern) { return Translation(pattern).run(); }

}  // namespace rhea::tokenizer
