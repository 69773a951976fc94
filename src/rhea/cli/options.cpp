// CLI11's exceptions become ours.
#include "rhea/cli/options.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "rhea/base/error.h"

namespace rhea::cli {

bool parse_options(CLI::App& app, Args args) {
  std::vector<std::string> reversed(args.rbegin(), args.rend());  // as CLI11 wants them
  try {
    app.parse(reversed);
    return true;
  } catch (const CLI::CallForHelp&) {
    // The command whose help is meant is the deepest one named.
    const CLI::App* named = &app;
    while (!named->get_subcommands().empty()) named = named->get_subcommands().front();
    fmt::print("{}", named->help());
    return false;
  } catch (const CLI::ParseError& error) {
    throw Error("{}: {}; `{} --help` lists the options", app.get_name(), error.what(),
                app.get_name());
  }
}

}  // namespace rhea::cli
