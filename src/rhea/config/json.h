// JSON of a config tree: what `rhea config`, debug.print_config, debug.save_config_file and
// checkpoints hold.
#pragma once
#include <string>

#include "rhea/config/config.h"

namespace rhea::config {

// Every field by name, primaries only; a slot's object begins with "_type". `indent` < 0: one line.
std::string to_json(const Config& config, int indent = 2);
// Writes to_json(config) and a line end to `path`, making its folder. Throws Error naming the path.
void save_json(const Config& config, const std::string& path);

// Text as a JSON string, quotes included. Bytes that are no UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

}  // namespace rhea::config
