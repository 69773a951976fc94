// `rhea run`: starts a command as torchrun starts a program, with the same flags. This process is
// the one rank.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <vector>

#include "rhea/base/error.h"
#include "rhea/base/log.h"
#include "rhea/base/text.h"
#include "rhea/cli/commands.h"
#include "rhea/cli/dispatch.h"

namespace rhea::cli {
namespace {

struct Flag {
  std::string_view name;
  bool has_value;
  std::string_view only;  // the value that one rank allows, "" where any will do
  bool has_effect;        // with one rank
};

constexpr std::array kFlags = {
    Flag{"nproc_per_node", true, "1", true},
    Flag{"nnodes", true, "1", true},
    Flag{"node_rank", true, "0", true},
    Flag{"max_restarts", true, "0", true},
    Flag{"local_ranks_filter", true, "0", true},
    Flag{"master_addr", true, "", true},
    Flag{"master_port", true, "", true},
    Flag{"rdzv_endpoint", true, "", true},
    Flag{"standalone", false, "", true},
    Flag{"no_python", false, "", true},
    Flag{"rdzv_backend", true, "", true},
    Flag{"rdzv_id", true, "", true},
    Flag{"rdzv_conf", true, "", false},
    Flag{"role", true, "", false},
    Flag{"log_dir", true, "", false},
    Flag{"redirects", true, "", false},
    Flag{"tee", true, "", false},
    Flag{"monitor_interval", true, "", false},
};

constexpr const char* kUsage =
    "usage: rhea run [flags] <command> [options], e.g.\n"
    "       rhea run --nproc_per_node=1 train --module llama3 --config llama3_debugmodel\n"
    "\n"
    "Starts the command as torchrun starts a program: RANK, WORLD_SIZE, LOCAL_RANK, "
    "LOCAL_WORLD_SIZE,\n"
    "MASTER_ADDR and MASTER_PORT are set for it. Flags are torchrun's; - and _ are alike.\n"
    "\n"
    "  --nproc_per_node, --nnodes      1: this version runs one rank\n"
    "  --node_rank, --max_restarts, --local_ranks_filter\n"
    "                                  0\n"
    "  --master_addr, --master_port    what the rank finds in its environment; or both as\n"
    "  --rdzv_endpoint                 host:port\n"
    "  --standalone, --no_python, --rdzv_backend, --rdzv_id\n"
    "                                  accepted; one rank needs no rendezvous\n"
    "  --rdzv_conf, --role, --log_dir, --redirects, --tee, --monitor_interval\n"
    "                                  accepted with a warning: they change nothing for one rank\n";

const Flag& find_flag(const std::string& name) {
  const Flag* nearest = kFlags.data();
  for (const Flag& flag : kFlags) {
    if (flag.name == name) return flag;
    if (edit_distance(flag.name, name) < edit_distance(nearest->name, name)) nearest = &flag;
  }
  throw Error("rhea run: unknown flag '--{}', did you mean '--{}'? `rhea run --help` lists them",
              name, nearest->name);
}

void check(const Flag& flag, const std::string& value) {
  if (flag.only.empty() || value == flag.only) return;
  // torchrun writes a range of nodes as 1:1.
  if (flag.name == "nnodes" && value == "1:1") return;
  if (flag.name == "nproc_per_node" || flag.name == "nnodes")
    throw Error(
        "rhea run --{}={}: this version runs one rank; give --{}=1 (a larger batch on one rank: "
        "--training.global_batch_size)",
        flag.name, value, flag.name);
  throw Error("rhea run --{}={}: with one rank it can only be {}", flag.name, value, flag.only);
}

// Takes the flags off the front of `words`.
std::map<std::string, std::string> take_flags(Args& words) {
  std::map<std::string, std::string> given;
  while (!words.empty() && words[0].starts_with("-")) {
    const std::string word = words[0];
    words = words.subspan(1);
    const size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    name.erase(0, name.find_first_not_of('-'));
    std::ranges::replace(name, '-', '_');
    const Flag& flag = find_flag(name);
    std::string value;
    if (!flag.has_value) {
      if (equals != std::string::npos) throw Error("rhea run: --{} takes no value", name);
    } else if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else {
      if (words.empty()) throw Error("rhea run: --{} requires a value", name);
      value = words[0];
      words = words.subspan(1);
    }
    if (!given.emplace(name, value).second) throw Error("rhea run: --{} is given twice", name);
    check(flag, value);
    if (!flag.has_effect) log::warning("run", "--{} changes nothing for one rank", name);
  }
  return given;
}

void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

void set_environment(const std::map<std::string, std::string>& given) {
  const auto value = [&](const char* name, const char* fallback) {
    const auto it = given.find(name);
    return it != given.end() ? it->second : std::string(fallback);
  };
  std::string address = value("master_addr", "127.0.0.1");
  std::string port = value("master_port", "29500");
  if (const std::string endpoint = value("rdzv_endpoint", ""); !endpoint.empty()) {
    const size_t colon = endpoint.rfind(':');
    address = endpoint.substr(0, colon);
    if (colon != std::string::npos) port = endpoint.substr(colon + 1);
  }
  for (const char* name : {"RANK", "LOCAL_RANK"}) set(name, "0");
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) set(name, "1");
  set("MASTER_ADDR", address);
  set("MASTER_PORT", port);
}

}  // namespace

int cmd_run(Args args) {
  if (!args.empty() && (args[0] == "--help" || args[0] == "-h")) {
    fmt::print("{}", kUsage);
    return 0;
  }
  const auto given = take_flags(args);
  // `rhea run --no_python rhea train ...` is torchrun's line with another first word.
  if (!args.empty() && (args[0] == "rhea" || args[0].ends_with("/rhea"))) args = args.subspan(1);
  if (args.empty())
    throw Error(
        "rhea run: no command, e.g. `rhea run --nproc_per_node=1 train --module M --config F`");
  if (args[0] == "run")
    throw Error("rhea run: `run` inside `run`; name the command to start, e.g. train");
  set_environment(given);
  return dispatch(args);
}

}  // namespace rhea::cli
