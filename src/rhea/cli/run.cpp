// `rhea run`: starts a command as torchrun starts a program, with the same flags. This process is
// the one rank.
#include <fmt/format.h>

#include <cstdlib>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/cli/commands.h"
#include "rhea/cli/dispatch.h"
#include "rhea/cli/run_flags.h"
#include "rhea/cli/run_logs.h"

namespace rhea::cli {
namespace {

void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

void set_environment(const RunFlags& flags) {
  for (const char* name : {"RANK", "LOCAL_RANK"}) set(name, "0");
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) set(name, "1");
  set("MASTER_ADDR", flags.master_addr);
  set("MASTER_PORT", std::to_string(flags.master_port));
}

}  // namespace

int cmd_run(Args args) {
  const RunFlags flags = take_run_flags(args);
  if (flags.help) {
    fmt::print("{}", run_usage());
    return 0;
  }
  // `rhea run --no_python rhea train ...` is torchrun's line with another first word.
  if (!args.empty() && (args[0] == "rhea" || args[0].ends_with("/rhea"))) args = args.subspan(1);
  if (args.empty())
    throw Error(
        "rhea run: no command, e.g. `rhea run --nproc_per_node=1 train --module M --config F`");
  if (args[0] == "run")
    throw Error("rhea run: `run` inside `run`; name the command to start, e.g. train");
  for (const std::string& warning : flags.warnings) log::warning("run", "{}", warning);
  set_environment(flags);
  const RankLogs logs(flags);
  // What the command throws belongs into its log, so it is reported before that ends.
  return guarded([&] { return dispatch(args); });
}

}  // namespace rhea::cli
