#include "rhea/components/checkpoint/base_model.h"

#include <nlohmann/json.hpp>

#include "rhea/base/json.h"

namespace rhea::checkpoint {

constexpr const char* kPart = "base_model";

void record_base_model(StateMap& state, const std::filesystem::path& base) {
  if (base.empty()) return;
  state[kPart] = nlohmann::json(base.string()).dump();
}

std::filesystem::path recorded_base_model(const StateMap& state) {
  const auto part = state.find(kPart);
  if (part == state.end()) return {};
  const nlohmann::json base = parse_json_or_discard(part->second);
  return base.is_string() ? base.get<std::string>() : "";
}

}  // namespace rhea::checkpoint
