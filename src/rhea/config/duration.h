// Durations as options write them: "3h30m", "900s", "2d".
#pragma once
#include <cstdint>
#include <string_view>

namespace rhea::config {

// Seconds; throws Error that shows the form. Units d, h, m, s, each at most once, from large to
// small.
int64_t parse_duration(std::string_view text);

}  // namespace rhea::config
