// Finds the command, maps exceptions to exit codes.
#include "rhea/cli/dispatch.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <new>
#include <vector>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/base/machine_memory.h"
#include "rhea/base/rethrow.h"
#include "rhea/base/status_line.h"
#include "rhea/base/text.h"
#include "rhea/base/version.h"
#include "rhea/plugin/throw_site.h"

namespace rhea::cli {
namespace {

void print_help() {
  fmt::print("rhea {}: trains large language models\n\n", version());
  fmt::print("usage: rhea <command> [options]\n\ncommands:\n");
  size_t width = 0;
  for (const Command& command : commands()) width = std::max(width, command.name.size());
  for (const Command& command : commands())
    fmt::print("  {:{}}  {}\n", command.name, width, command.help);
  fmt::print(
      "\n`rhea help <command>` (or `rhea <command> --help`) lists the options of one command.\n");
}

const Command* find_command(std::string_view name) {
  for (const Command& command : commands())
    if (command.name == name) return &command;
  return nullptr;
}

[[noreturn]] void unknown_command(std::string_view name) {
  const Command* nearest = nullptr;
  size_t best = 3;  // further away than this is no typo
  for (const Command& command : commands()) {
    const size_t distance = edit_distance(name, command.name);
    if (distance < best) {
      best = distance;
      nearest = &command;
    }
  }
  throw Error("unknown command '{}'{}; `rhea --help` lists the commands", name,
              nearest ? fmt::format(", did you mean '{}'?", nearest->name) : "");
}

}  // namespace

int dispatch(Args words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    print_help();
    // Without a command nothing was asked for: a script that lost its words must not look
    // successful.
    return words.empty() ? static_cast<int>(ExitCode::user_error) : 0;
  }
  if (words[0] == "--version") return cmd_version(words.subspan(1));
  if (words[0] == "help") {
    if (words.size() == 1) return dispatch(std::vector<std::string>{"--help"});
    return dispatch(std::vector<std::string>{words[1], "--help"});
  }
  const Command* command = find_command(words[0]);
  if (command == nullptr) unknown_command(words[0]);
  return command->run(words.subspan(1));
}

int guarded(const std::function<int()>& body) {
  const auto report = [](std::string_view message, ExitCode code) {
    log::clear_status();
    std::fflush(stdout);
    fmt::print(stderr, "rhea: error: {}\n", printable(message));
    // A kernel, op or module of a user that threw while it was used.
    if (const std::string site = plugin::throw_site(); !site.empty())
      fmt::print(stderr, "  thrown at {}\n", site);
    return static_cast<int>(code);
  };
  try {
    const int code = body();
    // Output that was lost, say on a full disk, must not look like success.
    if (!std::cout.flush() || std::fflush(stdout) != 0)
      return report("standard output could not be written", ExitCode::out_of_memory);
    return code;
  } catch (const ExitError& error) {
    return report(error.what(), error.code());
  } catch (const std::bad_alloc&) {
    return report(
        fmt::format("out of memory: the system refused an allocation ({}); `rhea plan` with the "
                    "same options shows what a run needs and which options lower it",
                    machine_memory().bound),
        ExitCode::out_of_memory);
  } catch (const std::filesystem::filesystem_error& error) {
    // Its own text begins with the names of the library and its function.
    const bool full = error.code() == std::errc::no_space_on_device;
    return report(fmt::format("{}: {}", error.path1().string(), error.code().message()),
                  full ? ExitCode::out_of_memory : ExitCode::user_error);
  } catch (const std::exception& error) {
    return report(json_reason(error.what()), ExitCode::user_error);
  } catch (...) {
    return report(fmt::format("a function {}", kThrewNoText), ExitCode::user_error);
  }
}

}  // namespace rhea::cli
