// One row a flag: what it sets, or why it changes nothing or cannot be had with one rank.
#include "rhea/cli/run_flags.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "rhea/base/error.h"
#include "rhea/base/text.h"
#include "rhea/config/leaf_text.h"

namespace rhea::cli {
namespace {

// Throws Error with what the value should be.
using Take = void (*)(const std::string& value, RunFlags& flags);

struct Flag {
  enum Kind { acts, idle, refused };
  std::string_view name;
  char letter;  // -x; 0: none
  bool has_value;
  Kind kind;
  std::string_view text;  // what it does, why it changes nothing, why it is refused
  Take take;              // null: any value
};

double number(const std::string& value) {
  double parsed = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  if (error != std::errc() || end != value.data() + value.size() || parsed < 0)
    throw Error("expected a number of seconds");
  return parsed;
}

int64_t port(std::string_view text, int64_t lowest) {
  int64_t parsed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc() || end != text.data() + text.size() || parsed < lowest || parsed > 65535)
    throw Error("expected a port of {} to 65535, got '{}'", lowest, text);
  return parsed;
}

// A host name or an address; IPv6 ones stand in brackets where a port may follow.
std::string host(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  const bool is_word = std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':' || c == '%';
  });
  if (text.empty() || !is_word)
    throw Error("expected the name or address of a host, got '{}'", text);
  return std::string(text);
}

void take_endpoint(const std::string& value, RunFlags& flags) {
  const size_t colon = value.find(':', value.starts_with('[') ? value.find(']') : 0);
  const bool has_port = colon != std::string::npos;
  if (has_port && value.find(':', colon + 1) != std::string::npos)
    throw Error("expected host:port; an IPv6 address stands in brackets: [::1]:29400");
  flags.master_addr = host(value.substr(0, colon));
  constexpr int64_t kDefaultPort = 29400;  // torchrun's
  const int64_t given = has_port ? port(value.substr(colon + 1), 0) : kDefaultPort;
  // 0 is a free port: nobody connects to a single rank, so the default of the environment stays.
  if (given > 0) flags.master_port = given;
}

int64_t small_number(std::string_view text, std::string_view what) {
  int64_t parsed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc() || end != text.data() + text.size() || parsed < 0)
    throw Error("expected {}, got '{}'", what, text);
  return parsed;
}

// "3", or "0:3,1:2" for local ranks.
Streams streams(const std::string& value) {
  Streams made;
  for (const std::string& item : config::split(value, ',')) {
    const size_t colon = item.find(':');
    if (colon != std::string::npos && small_number(item.substr(0, colon), "a local rank") != 0)
      throw Error("rank 0 is the only one");
    const int64_t set = small_number(colon == std::string::npos ? item : item.substr(colon + 1),
                                     "0, 1 (standard output), 2 (standard error) or 3 (both)");
    if (set > 3)
      throw Error("expected 0, 1 (standard output), 2 (standard error) or 3 (both), got {}", set);
    made = {(set & 1) != 0, (set & 2) != 0};
  }
  return made;
}

void expect_one_of(const std::string& value, std::initializer_list<std::string_view> known) {
  if (std::ranges::find(known, value) == known.end())
    throw Error("expected one of: {}", fmt::join(known, ", "));
}

void one_rank(const std::string& flag, const std::string& value, bool good) {
  if (!good)
    throw Error(
        "this version runs one rank; give --{}=1 (a larger batch on one rank: "
        "--training.global_batch_size), got {}",
        flag, value);
}

void pairs(const std::string& value, RunFlags&) {
  for (const std::string& item : config::split(value, ','))
    if (const size_t equals = item.find('='); equals == 0 || equals == std::string::npos)
      throw Error("expected key=value,key=value, got '{}'", item);
}

void ranks_to_show(const std::string& value, RunFlags&) {
  bool shows = false;
  for (const std::string& item : config::split(value, ','))
    shows |= small_number(item, "ranks, e.g. 0 or 0,1") == 0;
  if (!shows) throw Error("rank 0 is the only one, and it would be silent");
}

void seconds(const std::string& value, RunFlags&) { number(value); }

constexpr std::string_view kNoPython = "commands of Rhea are no Python; leave it out";

constexpr Flag kFlags[] = {
    {"nproc_per_node", 0, true, Flag::acts, "ranks on this machine: 1",
     [](const std::string& v, RunFlags&) { one_rank("nproc_per_node", v, v == "1"); }},
    {"nnodes", 0, true, Flag::acts, "machines: 1, or 1:1",
     [](const std::string& v, RunFlags&) { one_rank("nnodes", v, v == "1" || v == "1:1"); }},
    {"node_rank", 0, true, Flag::acts, "number of this machine: 0",
     [](const std::string& v, RunFlags&) {
       if (v != "0") throw Error("with one machine it can only be 0");
     }},
    {"master_addr", 0, true, Flag::acts, "MASTER_ADDR of the rank (127.0.0.1)",
     [](const std::string& v, RunFlags& flags) { flags.master_addr = host(v); }},
    {"master_port", 0, true, Flag::acts, "MASTER_PORT of the rank (29500)",
     [](const std::string& v, RunFlags& flags) { flags.master_port = port(v, 1); }},
    {"rdzv_endpoint", 0, true, Flag::acts, "both, as host:port", take_endpoint},
    {"rdzv_id", 0, true, Flag::acts, "name of the run in --log_dir",
     [](const std::string& v, RunFlags& flags) {
       if (v.empty() || v.find('/') != v.npos) throw Error("expected a name without /");
       flags.run_id = v;
     }},
    {"rdzv_backend", 0, true, Flag::acts, "any of torchrun's: one rank needs no rendezvous",
     [](const std::string& v, RunFlags&) {
       expect_one_of(v, {"static", "c10d", "etcd", "etcd-v2"});
     }},
    {"standalone", 0, false, Flag::acts, "as without: one rank needs no rendezvous", nullptr},
    {"no_python", 0, false, Flag::acts, "the command may be `rhea train ...`", nullptr},
    {"virtual_local_rank", 0, false, Flag::acts, "LOCAL_RANK is 0", nullptr},
    {"role", 0, true, Flag::acts, "${role_name} of --log_line_prefix_template (default)",
     [](const std::string& v, RunFlags& flags) { flags.role = v; }},
    {"local_ranks_filter", 0, true, Flag::acts, "ranks on the console: 0 must be among them",
     ranks_to_show},
    {"redirects", 'r', true, Flag::acts,
     "into files instead of the console: 1 standard output, 2 standard error, 3 both",
     [](const std::string& v, RunFlags& flags) { flags.redirects = streams(v); }},
    {"tee", 't', true, Flag::acts, "into files and to the console, there with a prefix",
     [](const std::string& v, RunFlags& flags) { flags.tee = streams(v); }},
    {"log_dir", 0, true, Flag::acts,
     "folder of the files of --redirects and --tee (a temporary one)",
     [](const std::string& v, RunFlags& flags) {
       if (v.empty()) throw Error("expected a folder");
       flags.log_dir = v;
     }},
    {"log_line_prefix_template", 0, true, Flag::acts,
     "of lines of --tee: ${role_name}, ${local_rank}, ${rank}, ${hostname}",
     [](const std::string& v, RunFlags& flags) { flags.line_prefix = v; }},
    {"max_restarts", 0, true, Flag::acts, "0",
     [](const std::string& v, RunFlags&) {
       if (v != "0")
         throw Error(
             "it can only be 0: a run that failed is not started again; start the line again by "
             "hand, and it goes on from its last checkpoint");
     }},
    {"monitor_interval", 0, true, Flag::idle, "the rank is this process", seconds},
    {"shutdown_timeout", 0, true, Flag::idle, "the rank is this process", seconds},
    {"start_method", 0, true, Flag::idle, "the rank is this process",
     [](const std::string& v, RunFlags&) {
       expect_one_of(v, {"spawn", "fork", "forkserver"});
     }},
    {"signals_to_handle", 0, true, Flag::idle, "signals reach the rank itself",
     [](const std::string& v, RunFlags&) {
       for (const std::string& item : config::split(v, ','))
         if (!item.starts_with("SIG")) throw Error("expected SIGTERM,SIGINT,..., got '{}'", item);
     }},
    {"rdzv_conf", 0, true, Flag::idle, "one rank needs no rendezvous", pairs},
    {"local_addr", 0, true, Flag::idle, "one rank connects to nobody",
     [](const std::string& v, RunFlags&) { host(v); }},
    {"module", 'm', false, Flag::refused, kNoPython, nullptr},
    {"run_path", 0, false, Flag::refused, kNoPython, nullptr},
    {"event_log_handler", 0, true, Flag::refused,
     "handlers are Python; metrics.sinks of the run take its numbers", nullptr},
    {"logs_specs", 0, true, Flag::refused, "log specs are Python; use --redirects or --tee",
     nullptr},
    {"duplicate_stdout_filters", 0, true, Flag::refused,
     "lines are not filtered; use --tee=1 and search in its file", nullptr},
    {"duplicate_stderr_filters", 0, true, Flag::refused,
     "lines are not filtered; use --tee=2 and search in its file", nullptr},
    {"numa_binding", 0, true, Flag::refused,
     "there are no devices to bind to; numactl or taskset before the line choose the cores",
     nullptr},
    {"print_completion", 0, true, Flag::refused, "there is no completion for shells", nullptr},
};

const Flag& find_flag(std::string_view written, const std::string& name) {
  const Flag* nearest = kFlags;
  for (const Flag& flag : kFlags) {
    if (flag.name == name) return flag;
    if (edit_distance(flag.name, name) < edit_distance(nearest->name, name)) nearest = &flag;
  }
  throw Error("rhea run: unknown flag '{}', did you mean '--{}'? `rhea run --help` lists them",
              written, nearest->name);
}
const Flag& find_letter(std::string_view written) {
  for (const Flag& flag : kFlags)
    if (flag.letter != 0 && written[1] == flag.letter) return flag;
  throw Error("rhea run: unknown flag '{}'; `rhea run --help` lists them", written);
}

// A word of the line as a flag, and the value that is written in the same word.
struct Word {
  const Flag* flag;
  std::optional<std::string> value;
};
Word parse(const std::string& word) {
  const size_t equals = word.find('=');
  if (word.starts_with("--")) {
    std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    std::ranges::replace(name, '-', '_');
    Word made{&find_flag(word.substr(0, equals), name), std::nullopt};
    if (equals != std::string::npos) made.value = word.substr(equals + 1);
    return made;
  }
  Word made{&find_letter(word), std::nullopt};
  if (word.size() > 2) made.value = word.substr(equals == 2 ? 3 : 2);
  return made;
}

void apply(const Flag& flag, const std::string& value, RunFlags& flags) {
  const std::string given =
      flag.has_value ? fmt::format("--{}={}", flag.name, value) : fmt::format("--{}", flag.name);
  if (flag.kind == Flag::refused) throw Error("rhea run {}: {}", given, flag.text);
  try {
    if (flag.take != nullptr) flag.take(value, flags);
  } catch (const Error& error) {
    throw Error("rhea run {}: {}", given, error.what());
  }
  if (flag.kind == Flag::idle)
    flags.warnings.push_back(fmt::format("{} changes nothing: {}", given, flag.text));
}

}  // namespace

RunFlags take_run_flags(Args& words) {
  RunFlags flags;
  std::set<std::string_view> given;
  while (!words.empty() && words[0].size() > 1 && words[0].starts_with("-")) {
    const std::string word = words[0];
    words = words.subspan(1);
    if (word == "--") break;
    if (word == "--help" || word == "-h") {
      flags.help = true;
      return flags;
    }
    auto [flag, value] = parse(word);
    if (!flag->has_value && value) throw Error("rhea run: --{} takes no value", flag->name);
    if (flag->has_value && !value) {
      if (words.empty()) throw Error("rhea run: --{} requires a value", flag->name);
      value = words[0];
      words = words.subspan(1);
    }
    if (!given.insert(flag->name).second) throw Error("rhea run: --{} is given twice", flag->name);
    apply(*flag, value.value_or(""), flags);
  }
  if (given.contains("standalone")) {
    // As torchrun does, which chooses these itself then.
    const RunFlags defaults;
    flags.master_addr = defaults.master_addr;
    flags.master_port = defaults.master_port;
    flags.run_id = defaults.run_id;
    for (const char* name :
         {"rdzv_backend", "rdzv_endpoint", "rdzv_id", "master_addr", "master_port"})
      if (given.contains(name))
        flags.warnings.push_back(fmt::format("--{} changes nothing beside --standalone", name));
  }
  const bool writes = flags.redirects.any() || flags.tee.any();
  if (flags.log_dir && !writes)
    flags.warnings.push_back("--log_dir changes nothing without --redirects or --tee");
  if (given.contains("log_line_prefix_template") && !flags.tee.any())
    flags.warnings.push_back("--log_line_prefix_template changes nothing without --tee");
  return flags;
}

std::vector<std::string> run_flag_names() {
  std::vector<std::string> names;
  for (const Flag& flag : kFlags) names.emplace_back(flag.name);
  return names;
}

std::string run_usage() {
  std::string text =
      "usage: rhea run [flags] [--] <command> [options], e.g.\n"
      "       rhea run --nproc_per_node=1 train --module llama3 --config llama3_debugmodel\n"
      "\n"
      "Starts the command as torchrun starts a program: RANK, WORLD_SIZE, LOCAL_RANK, "
      "LOCAL_WORLD_SIZE,\n"
      "MASTER_ADDR and MASTER_PORT are set for it. Flags are torchrun's; - and _ are alike. This\n"
      "version runs one rank, which is this process.\n";
  const auto list = [&](Flag::Kind kind, std::string_view title) {
    text += fmt::format("\n{}\n", title);
    for (const Flag& flag : kFlags)
      if (flag.kind == kind)
        text += fmt::format("  {:<28}{}\n",
                            flag.letter != 0 ? fmt::format("--{}, -{}", flag.name, flag.letter)
                                             : fmt::format("--{}", flag.name),
                            flag.text);
  };
  list(Flag::acts, "flags:");
  list(Flag::idle, "accepted with a warning, because they change nothing:");
  list(Flag::refused, "refused:");
  return text;
}

}  // namespace rhea::cli
