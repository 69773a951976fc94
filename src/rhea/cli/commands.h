// The subcommands of `rhea`. A new command: declare it here, define it in a file of its own (or
// call the component's entry point), add one row to kCommands in commands.cpp.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace rhea::cli {

// The words after the command's name.
using Args = std::span<const std::string>;

struct Command {
  std::string_view name;
  std::string_view help;  // one line for `rhea --help`
  int (*run)(Args);       // returns the exit code; throws Error for a user's mistake
};

// Every command, in the order in which `rhea --help` lists them.
std::span<const Command> commands();

int cmd_cache(Args args);
int cmd_check(Args args);
int cmd_config(Args args);
int cmd_convert(Args args);
int cmd_doctor(Args args);
int cmd_eval(Args args);
int cmd_inspect(Args args);
int cmd_tokenizer(Args args);
int cmd_generate(Args args);
int cmd_plan(Args args);
int cmd_run(Args args);
int cmd_score(Args args);
int cmd_train(Args args);
int cmd_version(Args args);

}  // namespace rhea::cli
