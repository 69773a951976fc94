#include "rhea/config/load.h"

#include <algorithm>
#include <ostream>

#include "rhea/base/log.h"
#include "rhea/config/help.h"
#include "rhea/config/json.h"
#include "rhea/config/no_effect.h"

namespace rhea::config {
namespace {

// Adds what is wrong with the values, and warnings for options that nothing reads.
void check_values(CommandLine& line, WorldFacts world, const CompleteModel& complete) {
  Report failed;
  try {
    if (complete) world.model = complete(line.config);
  } catch (const ExitError&) {
    throw;  // has an exit code of its own
  } catch (const Error& error) {
    failed.add("model_spec", "", error.what());
  }
  line.report.append(validate(line.config, world));
  line.report.append(failed);
  warn_without_effect(line.config, line.given, line.report);
}

}  // namespace

CommandLine load(std::span<const std::string> args, const ConfigRegistry& registry,
                 const WorldFacts& world, const CompleteModel& complete) {
  CommandLine line = parse_command_line(args, registry);
  if (line.has_recipe) check_values(line, world, complete);
  return line;
}

TrainerConfig load_or_throw(std::span<const std::string> args, const ConfigRegistry& registry,
                            const WorldFacts& world, const CompleteModel& complete) {
  CommandLine line = load(args, registry, world, complete);
  for (const std::string& warning : line.report.warnings) log::warning("config", "{}", warning);
  line.report.raise();
  return std::move(line.config);
}

void print_config(std::span<const std::string> args, const ConfigRegistry& registry,
                  const CompleteModel& complete, std::ostream& out, std::ostream& notes) {
  std::vector<std::string> rest(args.begin(), args.end());
  if (std::erase(rest, "--list") > 0) {
    if (!rest.empty()) throw Error("--list stands alone, got also '{}'", rest.front());
    print_modules(registry, out);
    return;
  }
  CommandLine line = parse_command_line(rest, registry);
  if (line.help) {
    out << "usage: rhea config --module M --config F [options]   the resolved config as JSON\n"
           "       rhea config --list                           modules and their config "
           "functions\n\n";
    print_options(line.config, out);
    return;
  }
  line.report.raise();
  check_values(line, {}, complete);
  out << to_json(line.config) << '\n';
  for (const std::string& warning : line.report.warnings) notes << "warning: " << warning << '\n';
  // What is wrong wherever it runs is an error; the rest may be meant for another machine.
  Report anywhere;
  for (const Problem& problem : line.report.problems)
    if (problem.anywhere) anywhere.problems.push_back(problem);
  anywhere.raise();
  if (!line.report.ok()) notes << "as a run of one process: " << line.report.text() << '\n';
}

}  // namespace rhea::config
