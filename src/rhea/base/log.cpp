// Log lines through spdlog.
#include "rhea/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

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

}  // namespace

void set_level(Level level) { logger().set_level(to_spdlog(level)); }
void set_enabled(bool enabled) {
  logger().set_level(enabled ? spdlog::level::info : spdlog::level::off);
}

void write(Level level, std::string_view component, std::string_view message) {
  constexpr std::string_view names[] = {"DEBUG", "INFO", "WARNING", "ERROR"};
  logger().log(to_spdlog(level), "{} - {} - {}", component, names[static_cast<int>(level)],
               message);
}

}  // namespace rhea::log
