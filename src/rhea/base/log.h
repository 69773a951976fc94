// The program's log: one line per fact, `[rhea] 2026-01-31 12:00:00,123 - <component> - INFO -
// text` on stdout.
#pragma once
#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace rhea::log {

enum class Level { debug, info, warning, error };

// Lines below `level` are dropped. Default info.
void set_level(Level level);
// Console output of this process on or off (ranks that are not in LOG_RANK).
void set_enabled(bool enabled);
// Writes one line; thread safe; flushes.
void write(Level level, std::string_view component, std::string_view message);

template <class... Args>
void info(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  write(Level::info, component, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warning(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  write(Level::warning, component, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void error(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  write(Level::error, component, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void debug(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  write(Level::debug, component, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace rhea::log
