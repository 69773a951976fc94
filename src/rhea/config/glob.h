// Globs over FQNs: what `fqns` of overrides and converters hold.
#pragma once
#include <string>
#include <string_view>

namespace rhea::config {

// `*` any text, dots too; `?` one character; `[0-9a]` one of these; `[!x]` one but these. Case
// matters and the whole text has to match.
class Glob {
 public:
  // Throws Error for a bracket that is never closed.
  explicit Glob(std::string_view pattern);
  bool matches(std::string_view text) const;

 private:
  std::string pattern_;
};

}  // namespace rhea::config
