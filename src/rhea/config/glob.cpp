#include "rhea/config/glob.h"

#include "rhea/base/error.h"

namespace rhea::config {
namespace {

// Index of the bracket that closes the set opened at `open`; npos where none does. A `]` right
// behind the opening stands for itself.
size_t set_end(std::string_view pattern, size_t open) {
  size_t first = open + 1;
  if (first < pattern.size() && pattern[first] == '!') ++first;
  return pattern.find(']', first + 1);
}

bool in_set(std::string_view set, char c) {
  const bool negated = !set.empty() && set.front() == '!';
  if (negated) set.remove_prefix(1);
  bool found = false;
  for (size_t i = 0; i < set.size(); ++i) {
    const bool range = i + 2 < set.size() && set[i + 1] == '-';
    found = found || (range ? set[i] <= c && c <= set[i + 2] : set[i] == c);
    if (range) i += 2;
  }
  return found != negated;
}

}  // namespace

Glob::Glob(std::string_view pattern) : pattern_(pattern) {
  for (size_t i = 0; i < pattern_.size(); ++i) {
    if (pattern_[i] != '[') continue;
    const size_t end = set_end(pattern_, i);
    if (end == std::string::npos)
      throw Error("glob '{}': the bracket at character {} is never closed", pattern_, i);
    i = end;
  }
}

bool Glob::matches(std::string_view text) const {
  // After a mismatch the last star takes one character more: no star before it ever has to.
  size_t p = 0, t = 0, star = std::string::npos, star_text = 0;
  while (t < text.size()) {
    if (p < pattern_.size() && pattern_[p] == '*') {
      star = p++;
      star_text = t;
      continue;
    }
    size_t next = p + 1;
    bool same = false;
    if (p < pattern_.size() && pattern_[p] == '[') {
      const size_t end = set_end(pattern_, p);
      same = in_set(std::string_view(pattern_).substr(p + 1, end - p - 1), text[t]);
      next = end + 1;
    } else if (p < pattern_.size()) {
      same = pattern_[p] == '?' || pattern_[p] == text[t];
    }
    if (same) {
      p = next;
      ++t;
    } else if (star != std::string::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern_.size() && pattern_[p] == '*') ++p;
  return p == pattern_.size();
}

}  // namespace rhea::config
