#include "rhea/components/checkpoint/peft_config.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/checkpoint/peft.h"

namespace rhea::checkpoint {

using nlohmann::json;

json read_adapter_config(const std::filesystem::path& folder) {
  const auto file = folder / kAdapterConfigFile;
  if (!std::filesystem::exists(file))
    throw Error("{} has no {}, so the scale of its adapters is unknown", folder.string(),
                kAdapterConfigFile);
  json config = parse_json(read_file(file), file.string());
  if (!config.is_object()) throw Error("{}: expected a JSON object", file.string());
  for (const char* name : {"r", "lora_alpha"}) {
    const auto at = config.find(name);
    if (at == config.end() || !at->is_number())
      throw Error("{}: {} is absent or no number", file.string(), name);
  }
  if (!config["r"].is_number_integer() || config["r"] < 1)
    throw Error("{}: r is {}, expected a whole number of at least 1", file.string(),
                config["r"].dump());
  return config;
}

void require_kind(const std::filesystem::path& file, const json& config, const json& expected) {
  const auto is_nothing = [](const json& value) {
    return value.is_null() || (value.is_structured() && value.empty()) || value == json(false);
  };
  for (const char* name :
       {"peft_type", "bias", "fan_in_fan_out", "use_rslora", "use_dora", "rank_pattern",
        "alpha_pattern", "modules_to_save", "layers_to_transform", "lora_bias", "use_qalora",
        "layer_replication", "target_parameters", "trainable_token_indices",
        "alora_invocation_tokens"}) {
    const json found = config.value(name, json()), own = expected.value(name, json());
    // An absent field has PEFT's default, which is what the run writes where it is a word.
    if (found == own || (is_nothing(found) && is_nothing(own))) continue;
    if (!config.contains(name) && own.is_string()) continue;
    throw Error("{}: {} is {}, expected {} here", file.string(), name, found.dump(), own.dump());
  }
}

double pattern_value(const std::filesystem::path& file, const json& config, const char* field,
                     std::string_view module, double otherwise) {
  const json patterns = config.value(field, json());
  std::optional<double> found;
  for (const auto& [key, value] : patterns.items()) {
    if (key.find_first_of("^$*+?()[]{}|\\") != std::string::npos)
      throw Error("{}: the key '{}' of {} is a regular expression; expected the end of a name",
                  file.string(), key, field);
    if (!value.is_number())
      throw Error("{}: {} of '{}' is {}, expected a number", file.string(), field, key,
                  value.dump());
    const bool matches =
        module == key || (module.ends_with(key) && module[module.size() - key.size() - 1] == '.');
    if (!matches) continue;
    if (found && *found != value.get<double>())
      throw Error("{}: {} says both {} and {} of {}", file.string(), field, *found, value.dump(),
                  module);
    found = value.get<double>();
  }
  return found.value_or(otherwise);
}

}  // namespace rhea::checkpoint
