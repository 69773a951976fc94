// The command shell: dispatch, exit codes, probes of the machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <vector>

#include "rhea/base/error.h"
#include "rhea/base/version.h"
#include "rhea/cli/dispatch.h"
#include "rhea/cli/machine.h"

namespace rhea::cli {
namespace {

using testing::HasSubstr;

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

Outcome run(const std::vector<std::string>& words) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = guarded([&] { return dispatch(words); });
  std::fflush(stdout);
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

TEST(Dispatch, HelpListsEveryCommand) {
  const Outcome help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const Command& command : commands()) {
    EXPECT_THAT(help.out, HasSubstr(std::string(command.name)));
    EXPECT_THAT(help.out, HasSubstr(std::string(command.help)));
  }
  EXPECT_EQ(run({"help"}).out, help.out);
}

TEST(Dispatch, EveryCommandAnswersHelp) {
  for (const Command& command : commands()) {
    const Outcome help = run({std::string(command.name), "--help"});
    EXPECT_EQ(help.code, 0) << command.name << help.err;
    EXPECT_THAT(help.out, HasSubstr("rhea " + std::string(command.name))) << command.name;
    EXPECT_EQ(run({"help", std::string(command.name)}).out, help.out);
  }
}

TEST(Dispatch, NoWordsIsAnErrorThatShowsTheCommands) {
  const Outcome none = run({});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.out, HasSubstr("commands:"));
}

TEST(Dispatch, AnUnknownCommandNamesTheNearest) {
  const Outcome typo = run({"docter"});
  EXPECT_EQ(typo.code, 2);
  EXPECT_THAT(typo.err, HasSubstr("'docter'"));
  EXPECT_THAT(typo.err, HasSubstr("did you mean 'doctor'?"));
  EXPECT_THAT(run({"zzzzzzzzz"}).err, testing::Not(HasSubstr("did you mean")));
}

TEST(Dispatch, VersionShowsWhatWasBuilt) {
  const Outcome shown = run({"--version"});
  EXPECT_EQ(shown.code, 0);
  EXPECT_THAT(shown.out, HasSubstr("rhea " + std::string(version())));
  for (const char* label : {"revision: ", "compiler: ", "cpu: ", "oneDNN: "})
    EXPECT_THAT(shown.out, HasSubstr(label));
  EXPECT_EQ(run({"version", "extra"}).code, 2);
}

TEST(Dispatch, DoctorReportsEverySection) {
  const Outcome report = run({"doctor"});
  EXPECT_EQ(report.code, 0);
  for (const char* section :
       {"cpu\n", "memory\n", "threads\n", "libraries\n", "tools\n", "data\n", "missing\n"})
    EXPECT_THAT(report.out, HasSubstr(section));
}

TEST(Guarded, MapsExceptionsToExitCodes) {
  const auto code_of = [](const std::function<int()>& body) {
    testing::internal::CaptureStderr();
    const int code = guarded(body);
    return std::pair(code, testing::internal::GetCapturedStderr());
  };
  EXPECT_EQ(code_of([] { return 7; }).first, 7);
  const auto user = code_of([]() -> int { throw Error("option x: bad"); });
  EXPECT_EQ(user.first, 2);
  EXPECT_EQ(user.second, "rhea: error: option x: bad\n");
  EXPECT_EQ(code_of([]() -> int { throw ExitError(ExitCode::non_finite, "nan"); }).first, 3);
  EXPECT_EQ(code_of([]() -> int { throw std::bad_alloc(); }).first, 4);
  EXPECT_EQ(code_of([]() -> int { throw std::runtime_error("library"); }).first, 2);
}

// What a user typed or a file holds must not steer the terminal, nor bury the message.
TEST(Guarded, MessagesAreMadePrintable) {
  const auto said = [](const std::string& message) {
    testing::internal::CaptureStderr();
    guarded([&]() -> int { throw Error(message); });
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said("a\x1b[31m\tb\r\x7f\nc\xc3\xa9"),
            "rhea: error: a\\x1b[31m\\x09b\\x0d\\x7f\nc\xc3\xa9\n");
  const std::string long_message = said("begin " + std::string(5'000'000, 'x') + " end");
  EXPECT_LT(long_message.size(), 11'000);
  EXPECT_THAT(long_message, testing::StartsWith("rhea: error: begin xxx"));
  EXPECT_THAT(long_message, HasSubstr("[... 4990010 bytes ...]"));
  EXPECT_THAT(long_message, testing::EndsWith("xxx end\n"));
  std::string list = "does not fit:";
  for (int i = 0; i < 2000; ++i) list += fmt::format("\n  model.layers.{}.up_proj.weight", i);
  EXPECT_EQ(said(list), "rhea: error: " + list + "\n") << "every line of a list";
}

TEST(Machine, ReadsKernelFormats) {
  EXPECT_EQ(selected_word("always [madvise] never\n"), "madvise");
  EXPECT_EQ(selected_word("never\n"), "never");
  EXPECT_EQ(cgroup_cpu_limit("150000 100000\n"), 1.5);
  EXPECT_EQ(cgroup_cpu_limit("max 100000\n"), std::nullopt);
}

TEST(Machine, FindsProgramsAsTheShellDoes) {
  EXPECT_THAT(find_program("sh"), testing::EndsWith("/sh"));
  EXPECT_EQ(find_program("no-such-program"), "");
  EXPECT_EQ(find_program("/nonexistent/sh"), "");
  EXPECT_EQ(program_version("/nonexistent/sh"), "");
}

}  // namespace
}  // namespace rhea::cli
