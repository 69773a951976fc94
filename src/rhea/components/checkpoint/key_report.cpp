// The message of a strict comparison.
#include "rhea/components/checkpoint/key_report.h"

#include <string_view>

#include "rhea/base/error.h"

namespace rhea::checkpoint {
namespace {

std::string section(std::string_view title, const std::vector<std::string>& keys) {
  if (keys.empty()) return "";
  std::string text = fmt::format("\n  {} ({}):", title, keys.size());
  for (const std::string& key : keys) text += "\n    " + key;
  return text;
}

}  // namespace

void KeyReport::raise(const std::string& source, const std::string& hint) const {
  if (missing.empty() && unexpected.empty() && unequal.empty() && contradictions.empty()) return;
  throw Error("{} does not fit the model:{}{}{}{}{}", source,
              section("missing, the model needs them", missing),
              section("unexpected, the model has no place for them", unexpected),
              section("of another shape or type", unequal),
              section("contradicting each other", contradictions),
              missing.empty() || hint.empty() ? "" : "\n  " + hint);
}

}  // namespace rhea::checkpoint
