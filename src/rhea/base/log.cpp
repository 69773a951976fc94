// Log lines through spdlog.
#include "rhea/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <mutex>
#include <utility>

#include "rhea/base/status_line.h"

namespace rhea::log {
namespace {

spdlog::logger& logger() {
  static spdlog::logger instance = [] {
    spdlog::logger made("rhea", std::make_shared<spdlog::sinks::stdout_sink_mt>());
    made.set_pattern("[rhea] %Y-%m-%d %H:%M:%S,%e - %v");
    made.set_level(spdlog::level::info);
    made.flush_on(spdlog::level::trace);
    return made;
  }();
  return instance;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warning:
      return spdlog::level::warn;
    default:
      return spdlog::level::err;
  }
}

std::mutex& status_mutex() {
  static std::mutex mutex;
  return mutex;
}
bool status_is_shown = false;

// With the mutex held.
void erase_status() {
  if (!std::exchange(status_is_shown, false)) return;
  std::fputs("\r\033[K", stdout);
  std::fflush(stdout);
}

}  // namespace

void show_status(std::string_view text) {
  const std::lock_guard lock(status_mutex());
  fmt::print("\r\033[K{}", text);
  std::fflush(stdout);
  status_is_shown = true;
}

void clear_status() {
  const std::lock_guard lock(status_mutex());
  erase_status();
}

void set_level(Level level) { logger().set_level(to_spdlog(level)); }
void set_enabled(bool enabled) {
  logger().set_level(enabled ? spdlog::level::info : spdlog::level::off);
}

void write(Level level, std::string_view component, std::string_view message) {
  constexpr std::string_view names[] = {"DEBUG", "INFO", "WARNING", "ERROR"};
  if (!logger().should_log(to_spdlog(level))) return;
  const std::lock_guard lock(status_mutex());
  erase_status();
  logger().log(to_spdlog(level), "{} - {} - {}", component, names[static_cast<int>(level)],
               message);
}

}  // namespace rhea::log
