// Regular expressions of options, in the syntax that Python's re and PCRE share.
#pragma once
#include <memory>
#include <string_view>

namespace rhea::config {

class Pattern {
 public:
  // Throws Error that says what is wrong with `text` and where.
  explicit Pattern(std::string_view text);
  // Whether it matches somewhere in `subject`. Throws Error where matching takes more steps than
  // any sane pattern needs.
  bool found_in(std::string_view subject) const;

 private:
  struct Code;
  struct FreeCode {
    void operator()(Code* code) const;
  };
  std::unique_ptr<Code, FreeCode> code_;
};

}  // namespace rhea::config
