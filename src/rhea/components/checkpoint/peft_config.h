// adapter_config.json of PEFT: what kind of adapters a folder holds.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace rhea::checkpoint {

// The object, with a whole number r >= 1 and a number lora_alpha. Throws Error naming the file and
// what is wrong.
nlohmann::json read_adapter_config(const std::filesystem::path& folder);

// Throws Error naming the first field by which the adapters of `config` compute something else than
// those of `expected`, the config that would say the same of them. `file` is for the message.
void require_kind(const std::filesystem::path& file, const nlohmann::json& config,
                  const nlohmann::json& expected);

// What `field` (rank_pattern, alpha_pattern) says of a module, else `otherwise`. Its keys are names
// of modules or their ends in whole segments. Throws Error naming a key that is a regular
// expression, and two keys that say different things.
double pattern_value(const std::filesystem::path& file, const nlohmann::json& config,
                     const char* field, std::string_view module, double otherwise);

}  // namespace rhea::checkpoint
