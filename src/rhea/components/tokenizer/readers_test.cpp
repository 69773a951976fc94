// Which reader takes which files, and readers of a user's file.
#include "rhea/components/tokenizer/readers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace rhea::tokenizer {
namespace {

namespace fs = std::filesystem;
using support::error_of;
using testing::HasSubstr;

class Readers : public testing::Test {
 protected:
  void write(const char* name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  std::string kind_of(const std::string& kind) {
    std::vector<std::string> warnings;
    return load_tokenizer({folder_}, kind, &warnings)->description();
  }

  support::TempFolder temporary_;
  fs::path folder_ = temporary_.path();
};

TEST_F(Readers, AutoTakesTheFirstThatKnowsTheFilesAndAKindTakesItsOwn) {
  write("vocab.txt", "[UNK]\nab\n");
  EXPECT_THAT(kind_of("auto"), HasSubstr("WordLevel"));
  write("vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  write("merges.txt", "#version: 0.2\na b\n");
  EXPECT_THAT(kind_of("auto"), HasSubstr("BPE"));
  EXPECT_THAT(kind_of("merges"), HasSubstr("BPE"));
  write("tokenizer.json",
        R"({"model": {"type": "WordLevel", "vocab": {"x": 0}, "unk_token": "x"}})");
  EXPECT_THAT(kind_of("auto"), HasSubstr("WordLevel"));
  EXPECT_THAT(kind_of("tokenizer_json"), HasSubstr("WordLevel"));
  EXPECT_THAT(kind_of("merges"), HasSubstr("BPE")) << "named, it is not passed over";
}

TEST_F(Readers, FilesOfAnotherKindAndUnknownKindsAreNamed) {
  write("vocab.txt", "[UNK]\n");
  EXPECT_THAT(error_of([&] { kind_of("sentencepiece"); }),
              HasSubstr("holds no files of kind sentencepiece (tokenizer.kind)"));
  EXPECT_THAT(error_of([&] { kind_of("own"); }),
              HasSubstr("tokenizer.kind 'own' is unknown; known: tokenizer_json, merges, "
                        "sentencepiece, tiktoken, words"));
  folder_ /= "absent";
  EXPECT_THAT(error_of([&] { kind_of("words"); }), HasSubstr("absent does not exist"));
}

TEST_F(Readers, OneOfAUsersFileIsAskedLastAndReadsWhatItKnows) {
  readers().add({.name = "shouted",
                 .knows = [](const fs::path& path) { return fs::exists(path / "LOUD"); },
                 .read =
                     [](const ReadOptions& options, std::vector<std::string>& warnings) {
                       warnings.push_back("loud");
                       return load_tokenizer(options.path / "LOUD" / "vocab.txt");
                     }},
                "loud.cpp");
  fs::create_directory(folder_ / "LOUD");
  std::ofstream(folder_ / "LOUD/vocab.txt") << "[UNK]\nhey\n";
  std::vector<std::string> warnings;
  EXPECT_EQ(load_tokenizer({folder_}, "auto", &warnings)->vocab_size(), 2);
  EXPECT_THAT(warnings, testing::ElementsAre("loud"));
  write("vocab.txt", "[UNK]\n");
  EXPECT_EQ(load_tokenizer({folder_}, "auto", &warnings)->vocab_size(), 1);
  EXPECT_EQ(load_tokenizer({folder_}, "shouted", &warnings)->vocab_size(), 2);
}

TEST_F(Readers, RowsThatCannotBeAreRefused) {
  EXPECT_THAT(error_of([] { readers().add({.name = "silent"}, "s.cpp"); }),
              HasSubstr("tokenizer.kind 'silent' of s.cpp has no read function"));
  const auto read = [](const ReadOptions&, std::vector<std::string>&) { return nullptr; };
  EXPECT_THAT(error_of([&] { readers().add({.name = "auto", .read = read}, "s.cpp"); }),
              HasSubstr("takes the word that leaves it to the files"));
  readers().add({.name = "empty", .read = read}, "s.cpp");
  EXPECT_THAT(error_of([&] { kind_of("empty"); }), HasSubstr("tokenizer.kind empty read nothing"));
}

}  // namespace
}  // namespace rhea::tokenizer
