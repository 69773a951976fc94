// Matching of patterns with one "{}".
#include "rhea/models/key_rules.h"

#include <algorithm>
#include <cctype>

namespace rhea::models {
namespace {

// The text that "{}" of `pattern` stands for; "" when the pattern has none and equals `name`.
std::optional<std::string_view> match(std::string_view pattern, std::string_view name) {
  const auto hole = pattern.find("{}");
  if (hole == std::string_view::npos)
    return pattern == name ? std::optional(std::string_view()) : std::nullopt;
  const auto head = pattern.substr(0, hole);
  const auto tail = pattern.substr(hole + 2);
  if (name.size() <= head.size() + tail.size() || !name.starts_with(head) || !name.ends_with(tail))
    return {};
  const auto number = name.substr(head.size(), name.size() - head.size() - tail.size());
  const bool digits = std::all_of(number.begin(), number.end(),
                                  [](unsigned char c) { return std::isdigit(c) != 0; });
  return digits ? std::optional(number) : std::nullopt;
}

std::string fill(std::string_view pattern, std::string_view hole, std::string_view number) {
  std::string text(pattern);
  if (const auto at = text.find(hole); at != std::string::npos)
    text.replace(at, hole.size(), number);
  return text;
}

}  // namespace

std::optional<PublishedKey> to_hf(std::span<const KeyRule> rules, std::string_view native) {
  for (const KeyRule& rule : rules) {
    if (const auto number = match(rule.native, native))
      return PublishedKey{fill(rule.hf, "{}", *number), rule.form};
  }
  return {};
}

std::string PublishedKey::slice(int64_t i) const {
  return fill(name, kSliceNumber, std::to_string(i));
}

}  // namespace rhea::models
