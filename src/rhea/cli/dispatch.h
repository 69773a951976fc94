// From the command line to a command, and from what the command throws to the exit code of the
// process.
#pragma once
#include <functional>

#include "rhea/cli/commands.h"

namespace rhea::cli {

// Runs the command that words[0] names. No words, `help` and `--help` print the list of commands.
int dispatch(Args words);

// Calls `body`; an exception is printed to standard error and turned into the exit code that
// belongs to it: ExitError its own, std::bad_alloc 4, anything else 2.
int guarded(const std::function<int()>& body);

}  // namespace rhea::cli
