#include "rhea/nn/trainable.h"

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/config/glob.h"

namespace rhea::nn {
namespace {

// The first part that is trained otherwise than parts[0]; null: none.
const ParameterPart* other_part(const std::vector<TrainableRule>& rules,
                                const Parameter& parameter) {
  const bool first = is_trainable(rules, parameter.parts.front().fqn);
  const auto other = std::ranges::find_if(parameter.parts, [&](const ParameterPart& part) {
    return is_trainable(rules, part.fqn) != first;
  });
  return other == parameter.parts.end() ? nullptr : &*other;
}

}  // namespace

void TrainableRule::fields(Visitor& v) {
  v("fqn", fqn, "glob over FQNs of parameters");
  v("trainable", trainable, "whether they are trained");
}

bool is_trainable(const std::vector<TrainableRule>& rules, const std::string& fqn) {
  for (size_t i = rules.size(); i-- > 0;) {
    if (config::Glob(rules[i].fqn).matches(fqn)) return rules[i].trainable;
  }
  return true;
}

bool is_partly_trainable(const std::vector<TrainableRule>& rules, const Parameter& parameter) {
  return other_part(rules, parameter) != nullptr;
}

bool is_trainable(const std::vector<TrainableRule>& rules, const Parameter& parameter) {
  const bool first = is_trainable(rules, parameter.parts.front().fqn);
  if (const auto* other = other_part(rules, parameter))
    throw Error(
        "'{}' is {} and '{}' is {}, but they are stored and trained as one parameter; freeze both "
        "or none",
        parameter.parts.front().fqn, first ? "trained" : "frozen", other->fqn,
        first ? "frozen" : "trained");
  return first;
}

}  // namespace rhea::nn
