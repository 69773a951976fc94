// The commands of `rhea tokenizer`, and the tokenizer of the repository made again.
#include "rhea/components/data/tokenizer_commands.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "rhea/base/error.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/data/debug_text.h"
#include "rhea/components/tokenizer/sha256.h"
#include "tests/support/temp_folder.h"

namespace rhea::data {
namespace {

namespace fs = std::filesystem;
const fs::path kDefaultTokenizer = fs::path(RHEA_SOURCE_DIR) / "tests/assets/tokenizer";

std::string encode(TokenizerCodeOptions options, const std::string& text) {
  options.tokenizer = kDefaultTokenizer;
  std::istringstream input(text);
  std::ostringstream output;
  tokenizer_encode(options, input, output);
  return output.str();
}

std::string decode(TokenizerCodeOptions options, const std::string& text) {
  options.tokenizer = kDefaultTokenizer;
  std::istringstream input(text);
  std::ostringstream output;
  tokenizer_decode(options, input, output);
  return output.str();
}

TEST(TokenizerCommands, the_default_tokenizer_is_made_again_byte_for_byte) {
  if (!fs::exists(kDebugTextFolder))
    GTEST_SKIP() << "the packages fortunes and fortunes-min are not installed";
  const std::string sum = tokenizer::sha256_hex(read_debug_text(kDebugTextFolder));
  if (read_file(kDefaultTokenizer / "README.md").find(sum) == std::string::npos)
    GTEST_SKIP() << "the installed text has SHA-256 " << sum
                 << ", another one than the committed tokenizer was made from";
  TokenizerTrainOptions options;
  options.output = fs::path(testing::TempDir()) / "rhea_default_tokenizer";
  std::ostringstream report;
  tokenizer_train(options, report);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    EXPECT_EQ(read_file(options.output / name), read_file(kDefaultTokenizer / name)) << name;
  fs::remove_all(options.output);
}

TEST(TokenizerCommands, decode_is_the_inverse_of_encode) {
  const std::string text = "Never give in.\n\n  \"Née\" 123456 \b_ <|eot_id|> \xF0\x9F\xA6\x99\n";
  for (const bool add_eos : {false, true})
    for (const bool no_specials : {false, true}) {
      TokenizerCodeOptions options;
      options.add_eos = add_eos;
      options.no_specials = no_specials;
      EXPECT_EQ(decode(options, encode(options, text)), text);
    }
  TokenizerCodeOptions lines;
  lines.jsonl = true;
  const std::string json = "\"a\\nb\"\n\"\"\n\"\xC3\xA9\"\n";
  EXPECT_EQ(decode(lines, encode(lines, json)), json);
}

TEST(TokenizerCommands, options_decide_on_special_tokens) {
  TokenizerCodeOptions options;
  EXPECT_EQ(encode(options, "a"), "2026 64\n");
  options.add_eos = true;
  EXPECT_EQ(encode(options, "a"), "2026 64 2027\n");
  options.no_specials = true;
  EXPECT_EQ(encode(options, "a"), "64 2027\n");
  options = {};
  options.no_specials = true;
  options.jsonl = true;
  EXPECT_EQ(encode(options, "\"a\"\n\n\"\"\n"), "[64]\n[]\n");
}

TEST(TokenizerCommands, errors_name_the_line) {
  TokenizerCodeOptions options;
  options.jsonl = true;
  for (const auto& [input, problem] :
       {std::pair{"\"a\"\n5\n", "line 2: expected a JSON string"}, {"\"a\n", "line 1: "}}) {
    try {
      encode(options, input);
      FAIL() << input;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(problem), std::string::npos) << error.what();
    }
  }
  for (const auto& [input, problem] :
       {std::pair{"5", "line 1: expected a list of token ids, found number"},
        {"[1]\n{}", "line 2: expected a list of token ids, found object"},
        {"[1.5]", "line 1: id 0 of the list is number, not a whole number"},
        {"[1, true]", "line 1: id 1 of the list is boolean"},
        {"[4294967297]", "line 1: id 0 of the list is 4294967297, which no token has"},
        {"[-1]", "line 1: id 0 of the list is -1, which no token has"}}) {
    try {
      decode(options, input);
      FAIL() << input;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(problem), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(decode({}, "1 2 x"), Error);
  EXPECT_THROW(decode({}, "99999"), Error);
}

TEST(TokenizerCommands, info_tells_sizes_and_special_tokens) {
  std::ostringstream output;
  tokenizer_info(kDefaultTokenizer, "auto", output);
  EXPECT_NE(output.str().find("entries        2048 (22 special), largest id 2047\n"),
            std::string::npos)
      << output.str();
  EXPECT_NE(output.str().find("eos            <|end_of_text|> (id 2027)\n"), std::string::npos)
      << output.str();
}

TEST(TokenizerCommands, a_kind_is_chosen_where_the_files_are_of_several) {
  const support::TempFolder temp;
  const auto folder = temp.path();
  std::filesystem::copy(kDefaultTokenizer, folder, std::filesystem::copy_options::recursive);
  std::ofstream(folder / "vocab.txt") << "[UNK]\nab\ncd\n";
  const auto ids_by = [&](const char* kind) {
    std::istringstream input("ab cd");
    std::ostringstream output;
    tokenizer_encode({.tokenizer = folder, .kind = kind, .no_specials = true}, input, output);
    return output.str();
  };
  EXPECT_EQ(ids_by("auto"), ids_by("tokenizer_json"));
  EXPECT_EQ(ids_by("words"), "1 2\n");
  EXPECT_THROW(ids_by("tiktoken"), Error);
  for (const auto& [kind, chosen] :
       {std::pair("auto", "tokenizer_json"), std::pair("words", "words")}) {
    std::ostringstream output;
    tokenizer_info(folder, kind, output);
    EXPECT_NE(output.str().find(std::string("read as        ") + chosen +
                                " (the files are of the kinds tokenizer_json, words;"),
              std::string::npos)
        << output.str();
  }
}

}  // namespace
}  // namespace rhea::data
