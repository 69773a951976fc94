// Words of score, generate, convert, inspect and tokenizer that must be refused: exit code 2, and a
// message that names the option and what it takes. (Those of runs:
// config/bad_command_line_test.cpp.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "rhea/cli/dispatch.h"

namespace rhea::cli {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

std::string refused(const std::vector<std::string>& words) {
  testing::internal::CaptureStderr();
  const int code = guarded([&] { return dispatch(words); });
  EXPECT_EQ(code, 2) << words[0];
  return testing::internal::GetCapturedStderr();
}

TEST(BadWords, NumbersOutOfRange) {
  const auto expect = [](const char* command, const char* option, const char* value,
                         const char* takes) {
    EXPECT_THAT(refused({command, "--model", "absent", "--input", "absent", "--output", "absent",
                         option, value}),
                AllOf(HasSubstr(option), HasSubstr(value), HasSubstr(takes)))
        << command << option << value;
  };
  for (const char* value : {"-1", "1025", "1.5", "nan", "", "99999999999999999999", " 1", "1 "})
    expect("score", "--threads", value, "is no integer from 0 to 1024");
  const auto expect_generate = [](const char* option, const char* value, const char* takes) {
    EXPECT_THAT(refused({"generate", "--model", "absent", option, value}),
                AllOf(HasSubstr(option), HasSubstr(value), HasSubstr(takes)))
        << option << value;
  };
  expect_generate("--threads", "1025", "is no integer from 0 to 1024");
  for (const char* value : {"0", "-1", "2147483648", "9223372036854775807", "1e3", "nan"})
    expect_generate("--max_new_tokens", value, "is no integer from 1 to 2147483647");
  for (const char* value : {"nan", "inf", "-0.1", "1e7", "hot"})
    expect_generate("--temperature", value, "is no number from 0 to 1000000");
  for (const char* value : {"nan", "1.01", "-1"})
    expect_generate("--top_p", value, "is no number from 0 to 1");
  expect_generate("--top_k", "-1", "is no integer from 0 to 2147483647");
  expect_generate("--seed", "-1", "is no integer from 0 to 9223372036854775807");
}

TEST(BadWords, ConversionsThatCannotBe) {
  const auto convert = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"convert", "--from", "absent", "--to", "absent_too"});
    return refused(words);
  };
  EXPECT_THAT(convert({}), HasSubstr("absent does not exist"));
  EXPECT_THAT(refused({"convert", "--from", "x"}), HasSubstr("--to is required"));
  EXPECT_THAT(refused({"convert", "--from", "x", "--to", ""}), HasSubstr("is empty"));
  EXPECT_THAT(convert({"--max_shard_size", "5XB"}), HasSubstr("'5XB' is no size"));
  EXPECT_THAT(convert({"--export_dtype", "fp8"}), HasSubstr("float32,bfloat16,float16"));
  EXPECT_THAT(convert({"--config_spelling", "v3"}), HasSubstr("v4,v5"));
  EXPECT_THAT(convert({"--module", "llama3"}), HasSubstr("needs --format native"));
  EXPECT_THAT(convert({"--format", "native", "--module", "llama9"}),
              AllOf(HasSubstr("llama9"), HasSubstr("llama3")));
  EXPECT_FALSE(fs::exists("absent_too"));
}

TEST(BadWords, InspectingWhatHoldsNoWeights) {
  const auto folder = fs::path(testing::TempDir()) / "rhea_bad_inspect";
  fs::remove_all(folder);
  fs::create_directories(folder);
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(refused({"inspect"}), HasSubstr("path is required"));
  EXPECT_THAT(refused({"inspect", "absent"}), HasSubstr("'absent' does not exist"));
  EXPECT_THAT(refused({"inspect", (folder / "pipe").string()}),
              HasSubstr("neither a file nor a folder"));
  EXPECT_THAT(refused({"inspect", folder.string()}), HasSubstr("holds no model"));
  fs::remove_all(folder);
}

// Found before the model is read, let alone computed: the model of these words does not exist.
TEST(BadWords, OutputThatCannotBeWritten) {
  const auto folder = fs::path(testing::TempDir()) / "rhea_bad_output";
  fs::remove_all(folder);
  fs::create_directories(folder);
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  const auto score = [](const fs::path& output) {
    return refused(
        {"score", "--model", "absent", "--input", "absent", "--output", output.string()});
  };
  EXPECT_THAT(score(folder), HasSubstr("it is a folder"));
  EXPECT_THAT(score(folder / "pipe"), HasSubstr("it is a device, pipe or socket"));
  EXPECT_THAT(score("/dev/null"), HasSubstr("/dev/null: it is a device"));
  EXPECT_THAT(score(folder / "absent" / "file"), HasSubstr("there is no folder"));
  EXPECT_THAT(score(""), HasSubstr("the name is empty"));
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace rhea::cli
