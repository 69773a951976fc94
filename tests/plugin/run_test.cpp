// `rhea run`: torchrun's line with one rank.
#include "tests/plugin/plugin_test.h"

namespace rhea {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Run : public PluginTest {};

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
  EXPECT_THAT(rhea({"run", "--max_restarts=3", "train"}).output,
              HasSubstr("--max_restarts=3: with one rank it can only be 0"));
  for (const char* word : {"--nproc_per_node=8", "--nnodes=2", "--nproc_per_node=gpu"})
    EXPECT_EQ(rhea({"run", word, "train"}).code, 2) << word;
}

TEST_F(Run, WrongWordsAreNamed) {
  EXPECT_THAT(rhea({"run", "--nproc_per_nod=1", "train"}).output,
              AllOf(HasSubstr("--nproc_per_nod"), HasSubstr("did you mean '--nproc_per_node'")));
  EXPECT_THAT(rhea({"run", "--nnodes"}).output, HasSubstr("--nnodes requires a value"));
  EXPECT_THAT(rhea({"run", "--nnodes=1", "--nnodes=1", "train"}).output, HasSubstr("given twice"));
  EXPECT_THAT(rhea({"run", "--nproc_per_node=1"}).output, HasSubstr("no command"));
  EXPECT_THAT(rhea({"run", "--tee", "3", "config", "--list"}).output,
              HasSubstr("--tee changes nothing for one rank"));
}

}  // namespace
}  // namespace rhea
