// Every flag of torchrun: its meaning, a warning, or a refusal by name.
#include "rhea/cli/run_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "rhea/base/error.h"
#include "rhea/cli/run_logs.h"

namespace rhea::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

using Words = std::vector<std::string>;

struct Taken {
  RunFlags flags;
  Words rest;
  std::string error;
};
Taken take(const Words& words) {
  Taken taken;
  Args args = words;
  try {
    taken.flags = take_run_flags(args);
    taken.rest = {args.begin(), args.end()};
  } catch (const Error& error) {
    taken.error = error.what();
  }
  return taken;
}

struct Case {
  const char* name;
  const char* good;     // a value that is taken, "" for a flag without one; null: refused always
  const char* warning;  // null: it acts
  const char* bad;      // a value that is refused; null: any is good
  const char* reason;   // of a refusal
};

// In the order of torchrun's own help.
const Case kCases[] = {
    {"nnodes", "1:1", nullptr, "2", "this version runs one rank"},
    {"nproc_per_node", "1", nullptr, "8", "this version runs one rank"},
    {"rdzv_backend", "c10d", nullptr, "mpi", "expected one of: static, c10d, etcd, etcd-v2"},
    {"rdzv_endpoint", "localhost:0", nullptr, "host:notaport",
     "expected a port of 0 to 65535, got 'notaport'"},
    {"rdzv_id", "101", nullptr, "a/b", "expected a name"},
    {"rdzv_conf", "timeout=900,is_host=1", "one rank needs no rendezvous", "timeout",
     "expected key=value"},
    {"standalone", "", nullptr, nullptr, nullptr},
    {"max_restarts", "0", nullptr, "3", "a run that failed is not started again"},
    {"monitor_interval", "0.1", "the rank is this process", "often", "expected a number"},
    {"start_method", "spawn", "the rank is this process", "thread", "expected one of: spawn"},
    {"event_log_handler", nullptr, nullptr, "null", "handlers are Python"},
    {"role", "rank", nullptr, nullptr, nullptr},
    {"module", nullptr, nullptr, "", "commands of Rhea are no Python"},
    {"no_python", "", nullptr, nullptr, nullptr},
    {"run_path", nullptr, nullptr, "", "commands of Rhea are no Python"},
    {"log_dir", "logs", "changes nothing without --redirects or --tee", "", "expected a folder"},
    {"redirects", "0:3", nullptr, "4", "expected 0, 1 (standard output), 2"},
    {"tee", "3", nullptr, "1:3", "rank 0 is the only one"},
    {"log_line_prefix_template", "${rank}: ", "changes nothing without --tee", nullptr, nullptr},
    {"local_ranks_filter", "0,1", nullptr, "1", "rank 0 is the only one"},
    {"duplicate_stdout_filters", nullptr, nullptr, "apple", "lines are not filtered"},
    {"duplicate_stderr_filters", nullptr, nullptr, "apple", "lines are not filtered"},
    {"node_rank", "0", nullptr, "1", "with one machine it can only be 0"},
    {"master_addr", "node-1.example.org", nullptr, "a b", "expected the name or address"},
    {"master_port", "29501", nullptr, "99999", "expected a port of 1 to 65535, got '99999'"},
    {"local_addr", "10.0.0.1", "one rank connects to nobody", "", "expected the name or address"},
    {"logs_specs", nullptr, nullptr, "default", "log specs are Python"},
    {"numa_binding", nullptr, nullptr, "node", "no devices to bind to"},
    {"signals_to_handle", "SIGTERM,SIGUSR1", "signals reach the rank itself", "TERM",
     "expected SIGTERM"},
    {"shutdown_timeout", "30", "the rank is this process", "-1", "expected a number"},
    {"virtual_local_rank", "", nullptr, nullptr, nullptr},
    {"print_completion", nullptr, nullptr, "bash", "no completion"},
};

std::string with_minus(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

TEST(RunFlags, TheTableHasAllOfTorchrunsAndNoOther) {
  Words names, tested;
  for (const Case& c : kCases) tested.emplace_back(c.name);
  EXPECT_THAT(run_flag_names(), testing::UnorderedElementsAreArray(tested));
}

TEST(RunFlags, EachIsTakenWarnedOfOrRefusedByName) {
  for (const Case& c : kCases) {
    const bool has_value =
        (c.good != nullptr && *c.good != '\0') || (c.bad != nullptr && *c.bad != '\0');
    for (const std::string& name : {std::string(c.name), with_minus(c.name)}) {
      const std::string flag = "--" + name;
      if (c.good != nullptr) {
        std::vector<Words> lines = {{flag, "train"}};
        if (has_value) lines = {{flag, c.good, "train"}, {flag + "=" + c.good, "train"}};
        for (const Words& line : lines) {
          const Taken taken = take(line);
          EXPECT_EQ(taken.error, "") << flag;
          EXPECT_THAT(taken.rest, testing::ElementsAre("train")) << flag;
          if (c.warning == nullptr)
            EXPECT_THAT(taken.flags.warnings, IsEmpty()) << flag;
          else
            EXPECT_THAT(taken.flags.warnings, testing::ElementsAre(HasSubstr(c.warning))) << flag;
        }
      }
      if (c.bad == nullptr) continue;
      const std::string shown =
          std::string("rhea run --") + c.name + (has_value ? "=" + std::string(c.bad) : "") + ": ";
      const Taken refused = take(has_value ? Words{flag, c.bad, "train"} : Words{flag, "train"});
      EXPECT_THAT(refused.error, testing::StartsWith(shown));
      EXPECT_THAT(refused.error, HasSubstr(c.reason));
    }
  }
}

TEST(RunFlags, ShortOnesAreTakenInTheirForms) {
  for (const Words& line : {Words{"-t", "3"}, {"-t3"}, {"-t=3"}, {"--tee=3"}}) {
    const RunFlags flags = take(line).flags;
    EXPECT_TRUE(flags.tee.out && flags.tee.err) << line[0];
  }
  const RunFlags flags = take({"-r", "0:2"}).flags;
  EXPECT_TRUE(!flags.redirects.out && flags.redirects.err);
  EXPECT_THAT(take({"-m", "torchtitan.train"}).error, HasSubstr("rhea run --module: "));
  EXPECT_THAT(take({"-x"}).error, HasSubstr("unknown flag '-x'"));
}

TEST(RunFlags, TheFirstWordThatIsNoneOrTwoMinusesEndThem) {
  EXPECT_THAT(take({"--nnodes=1", "train", "--tee", "3"}).rest,
              testing::ElementsAre("train", "--tee", "3"));
  EXPECT_THAT(take({"--nnodes=1", "--", "train"}).rest, testing::ElementsAre("train"));
  EXPECT_TRUE(take({"--nnodes=1", "--help"}).flags.help);
  EXPECT_TRUE(take({"-h"}).flags.help);
}

TEST(RunFlags, EndpointsAreHostsWithPorts) {
  const auto endpoint = [](const char* text) {
    return take({std::string("--rdzv_endpoint=") + text});
  };
  EXPECT_EQ(endpoint("node1:29401").flags.master_addr, "node1");
  EXPECT_EQ(endpoint("node1:29401").flags.master_port, 29401);
  EXPECT_EQ(endpoint("node1").flags.master_port, 29400);
  EXPECT_EQ(endpoint("node1:0").flags.master_port, 29500);
  EXPECT_EQ(endpoint("[::1]:29401").flags.master_addr, "::1");
  EXPECT_EQ(endpoint("[::1]:29401").flags.master_port, 29401);
  for (const char* bad :
       {"", ":29400", "host:", "host:65536", "host:-1", "host:29400x", "::1", "a b:1"})
    EXPECT_THAT(endpoint(bad).error,
                testing::StartsWith(std::string("rhea run --rdzv_endpoint=") + bad + ": expected "))
        << bad;
  const RunFlags alone = take({"--standalone", "--rdzv_endpoint=node1:29401"}).flags;
  EXPECT_EQ(alone.master_addr, "127.0.0.1");
  EXPECT_THAT(alone.warnings,
              testing::ElementsAre("--rdzv_endpoint changes nothing beside --standalone"));
}

TEST(RunFlags, MistakesAreNamed) {
  EXPECT_EQ(take({"--nproc_per_nod=1"}).error,
            "rhea run: unknown flag '--nproc_per_nod', did you mean '--nproc_per_node'? `rhea run "
            "--help` lists them");
  EXPECT_THAT(take({"--nnodes"}).error, HasSubstr("--nnodes requires a value"));
  EXPECT_THAT(take({"--nnodes=1", "--nnodes=1"}).error, HasSubstr("given twice"));
  EXPECT_THAT(take({"--standalone=1"}).error, HasSubstr("--standalone takes no value"));
}

TEST(RunFlags, TheUsageListsEach) {
  for (const std::string& name : run_flag_names()) EXPECT_THAT(run_usage(), HasSubstr("--" + name));
}

TEST(RunFlags, PrefixesOfLinesAreFilledIn) {
  RunFlags flags;
  flags.role = "rank";
  EXPECT_EQ(line_prefix(flags), "[rank0]:");
  flags.line_prefix = "${rank}/${local_rank} $x ";
  EXPECT_EQ(line_prefix(flags), "0/0 $x ");
}

}  // namespace
}  // namespace rhea::cli
