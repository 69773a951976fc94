// Fields of a config by name: set from JSON, and copied between configs.
#pragma once
#include <span>
#include <string>

#include "rhea/config/sections/override.h"

namespace rhea::config {

// Sets the fields of `config` that the JSON object `text` names. Throws Error that begins with
// `origin` and lists the fields there are for an unknown name, a value of another type or out of
// its range; "<origin> must be a JSON object, got ..." for text that is none, with line and column
// where it is no JSON at all.
void set_fields(Config& config, const std::string& text, const std::string& origin);
// "block: int, mode: text", the fields that set_fields() takes; "none".
std::string field_list(Config& config);
// "block=256, mode=fast": the members of a JSON object as set_fields() takes it.
std::string json_members(const std::string& text);

}  // namespace rhea::config
