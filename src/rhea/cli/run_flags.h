// torchrun's flags, as `rhea run` takes them for one rank.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rhea/cli/commands.h"

namespace rhea::cli {

// A set of standard streams, as torchrun writes it: 1 standard output, 2 standard error, 3 both.
struct Streams {
  bool out = false, err = false;
  bool any() const { return out || err; }
};

struct RunFlags {
  bool help = false;
  // What the rank finds in its environment.
  std::string master_addr = "127.0.0.1";
  int64_t master_port = 29500;
  std::string role = "default", run_id = "none";
  // Where the rank's output goes besides, or instead of, the console.
  Streams redirects, tee;
  std::optional<std::string> log_dir;
  std::string line_prefix = "[${role_name}${local_rank}]:";
  std::vector<std::string> warnings;  // of flags that change nothing
};

// Takes the flags off the front of `words`, up to the command or a `--`. `--name`, `-` or `_`
// within it, `--name=value`, `--name value`, `-x value`, `-xvalue`. Throws Error that names the
// flag and its value: unknown (with the nearest), twice, without its value, a value that is none,
// or one that this version does not have.
RunFlags take_run_flags(Args& words);

// The names of all flags: every flag of torchrun.
std::vector<std::string> run_flag_names();
// The text of `rhea run --help`.
std::string run_usage();

}  // namespace rhea::cli
