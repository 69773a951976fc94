// Standard streams that are closed or cannot be read.
#include <fmt/ranges.h>

#include "rhea/base/mapped_file.h"
#include "tests/faults/fault_test.h"

namespace rhea {
namespace {

class Streams : public FaultTest {};

// The number of a closed stream would go to the next file that is opened.
TEST_F(Streams, LogLinesNeverLandInAFile) {
  for (const std::vector<int>& closed : {std::vector{1}, {0, 1}, {1, 2}, {0, 1, 2}}) {
    const std::string dump = fmt::format("closed_{}", fmt::join(closed, "_"));
    const Outcome outcome = run(words(dump, 4), {.closed = closed});
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    for (const auto& entry : fs::recursive_directory_iterator(temp_.path() / dump)) {
      if (!entry.is_regular_file()) continue;
      EXPECT_EQ(read_file(entry.path()).find("[rhea] "), std::string::npos) << entry.path();
    }
    expect_whole(dump);
  }
}

TEST_F(Streams, InputThatCannotBeReadIsNoEmptyText) {
  const std::string tokenizer = RHEA_SOURCE_DIR "/tests/assets/tokenizer";
  for (const char* command : {"encode", "decode"}) {
    const Outcome outcome = run({"tokenizer", command, "--tokenizer", tokenizer}, {.closed = {0}});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.output,
              "rhea: error: standard input cannot be read; is it closed, or a folder?\n");
  }
}

TEST_F(Streams, OutputThatIsLostIsNoSuccess) {
  for (const Words& command :
       {Words{"version"}, Words{"train", "--help"}, Words{"config", "--list"}}) {
    const Outcome outcome = run(command, {.closed = {1}});
    EXPECT_EQ(outcome.code, 4) << command[0];
    EXPECT_EQ(outcome.output, "rhea: error: standard output could not be written\n");
  }
}

}  // namespace
}  // namespace rhea
