// `rhea run`: torchrun's line with one rank.
#include "tests/support/run.h"
#include <sstream>

#include "tests/plugin/plugin_test.h"

namespace rhea {
namespace {

using support::Words;
using testing::HasSubstr;

class Run : public PluginTest {
 protected:
  // The log file of the rank in logs/none_<random>/attempt_0/0.
  std::string log_text(const char* name = "stdout.log") const {
    for (const auto& entry : std::filesystem::directory_iterator(folder() / "logs"))
      return read_file(entry.path() / "attempt_0/0" / name);
    return "no log";
  }
};

TEST_F(Run, StartsACommandWithTorchrunsFlags) {
  const std::vector<std::string> command = {"config", "--module", "llama3", "--config",
                                            "llama3_debugmodel"};
  const std::vector<std::vector<std::string>> lines = {
      {"run", "--nproc_per_node=1"},
      {"run", "--nproc-per-node", "1", "--nnodes=1:1", "--standalone"},
      {"run", "--nproc_per_node=1", "--rdzv_backend", "c10d", "--rdzv_endpoint=localhost:0",
       "--local-ranks-filter", "0", "--no-python", "rhea"},
      {"run"}};
  const std::string direct = rhea(command).output;
  for (std::vector<std::string> words : lines) {
    words.insert(words.end(), command.begin(), command.end());
    const Ended ended = rhea(words);
    EXPECT_EQ(ended.code, 0) << ended.output;
    EXPECT_EQ(ended.output, direct);
  }
}

TEST_F(Run, MoreRanksAreRefusedByName) {
  EXPECT_THAT(rhea({"run", "--nproc_per_node=8", "train"}).output,
              HasSubstr("rhea run --nproc_per_node=8: this version runs one rank"));
  EXPECT_THAT(rhea({"run", "--nnodes", "2", "train"}).output, HasSubstr("--nnodes=2"));
  EXPECT_THAT(
      rhea({"run", "--max_restarts=3", "train"}).output,
      HasSubstr("--max_restarts=3: it can only be 0: a run that failed is not started again"));
  for (const char* word : {"--nproc_per_node=8", "--nnodes=2", "--nproc_per_node=gpu"})
    EXPECT_EQ(rhea({"run", word, "train"}).code, 2) << word;
}

// Each flag by itself: src/rhea/cli/run_flags_test.cpp.
TEST_F(Run, WrongWordsEndTheLine) {
  for (const Words& words : {Words{"run", "--nproc_per_nod=1", "train"},
                             {"run", "--master_port", "99999", "train"},
                             {"run", "--rdzv_endpoint", "host:notaport", "train"},
                             {"run", "-m", "train"},
                             {"run", "--nproc_per_node=1"}}) {
    const Ended ended = rhea(words);
    EXPECT_EQ(ended.code, 2) << words[1];
    EXPECT_THAT(ended.output, HasSubstr("rhea: error: rhea run")) << words[1];
  }
  EXPECT_THAT(rhea({"run", "--monitor_interval", "1", "config", "--list"}).output,
              HasSubstr("--monitor_interval=1 changes nothing: the rank is this process"));
}

// With a port of 0 torchrun looks for a free one; the rank must find a usable number all the same.
TEST_F(Run, TrainsWithTheLaunchLineOfTorchtitan) {
  Words words = {"run",
                 "--nproc_per_node=1",
                 "--rdzv_backend",
                 "c10d",
                 "--rdzv_endpoint=localhost:0",
                 "--local-ranks-filter",
                 "0",
                 "--role",
                 "rank",
                 "--tee",
                 "3",
                 "--log_dir=logs"};
  const Words train = {"train", "--dump_folder=" + (folder() / "out").string()};
  words = support::join(support::join(words, train),
                        support::with_option(support::small_run(folder()), "--training.steps=2"));
  const Ended ended = rhea(words);
  ASSERT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(support::read_rows(folder() / "out").size(), 2U);
  std::istringstream log(log_text());
  int lines = 0;
  for (std::string line; std::getline(log, line); ++lines)
    EXPECT_THAT(ended.output, HasSubstr("[rank0]:" + line + "\n"));
  EXPECT_GT(lines, 5);
}

TEST_F(Run, RedirectsLeaveTheConsoleAloneAndErrorsReachTheLog) {
  const Ended ended = rhea({"run", "-r", "3", "--log_dir=logs", "train", "--module=absent"});
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.output, testing::Not(HasSubstr("absent")));
  EXPECT_THAT(log_text("stderr.log"),
              testing::AllOf(HasSubstr("rhea: error: "), HasSubstr("Cannot load module 'absent'")));
}

}  // namespace
}  // namespace rhea
