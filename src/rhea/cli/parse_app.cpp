// CLI11's exceptions become ours.
#include "rhea/cli/parse_app.h"

#include <fmt/core.h>

#include <algorithm>

#include "rhea/base/error.h"

namespace rhea::cli {

std::optional<int> parse(CLI::App& app, Args args) {
  std::vector<std::string> words(args.rbegin(), args.rend());  // CLI11 takes them from the back
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    throw Error("{}: {}; see `{} --help`", app.get_name(), error.what(), app.get_name());
  }
  return {};
}

}  // namespace rhea::cli
