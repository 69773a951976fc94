// Published tokenizers against ids that other programs computed (files of ../shared).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/tokenizer/tokenizer.h"

namespace rhea::tokenizer {
namespace {

namespace fs = std::filesystem;
const fs::path kShared = fs::path(RHEA_SHARED_DIR) / "data";

std::vector<std::string> c4_texts(size_t count) {
  std::ifstream file(kShared / "text/c4_mini_train.jsonl");
  std::vector<std::string> texts;
  for (std::string line; texts.size() < count && std::getline(file, line);)
    texts.push_back(parse_json(line).at("text").get<std::string>());
  return texts;
}

class GoldenTokenizer : public testing::TestWithParam<const char*> {};

TEST_P(GoldenTokenizer, gives_the_ids_of_the_reference_and_its_text_back) {
  const fs::path golden_file = kShared / "tokenizer_goldens" / (std::string(GetParam()) + ".json");
  if (!fs::exists(golden_file))
    GTEST_SKIP() << golden_file << " is absent: published tokenizers are not in the repository";
  const auto golden = parse_json(read_file(golden_file));
  const auto tokenizer = load_tokenizer(kShared / golden.at("tokenizer").get<std::string>());
  EncodeOptions options;
  options.add_specials = false;
  for (const auto& entry : golden.at("cases")) {
    const auto text = entry.at("text").get<std::string>();
    const auto expected = entry.at("ids").get<std::vector<int32_t>>();
    ASSERT_EQ(tokenizer->encode(text, options), expected) << "text: " << text;
  }
  for (const std::string& text : c4_texts(200))
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(text, options)), text);
}

INSTANTIATE_TEST_SUITE_P(published, GoldenTokenizer,
                         testing::Values("qwen3", "llama3_2", "gpt2", "gptoss", "deepseek_v3",
                                         "stories260K"));

// The ids were made with a tokenizer.json of the same vocabulary.
TEST(PublishedTokenizer, sentencepiece_gives_the_ids_of_llama2) {
  const fs::path model = kShared / "tokenizers/sentencepiece/tokenizer.llama2.model";
  if (!fs::exists(model))
    GTEST_SKIP() << model << " is absent: published tokenizers are not in the repository";
  const auto golden = parse_json(read_file(kShared / "tokenizer_goldens/llama2.json"));
  const auto tokenizer = load_tokenizer(model);
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  for (const auto& entry : golden.at("cases")) {
    const auto text = entry.at("text").get<std::string>();
    EXPECT_EQ(tokenizer->encode(text, {.add_specials = false}),
              entry.at("ids").get<std::vector<int32_t>>())
        << "text: " << text;
  }
  for (const std::string& text : c4_texts(100))
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  EXPECT_EQ(tokenizer->encode("a</s>", {.add_bos = true}).back(), 2);
}

// r50k_base is GPT-2's vocabulary as tiktoken writes it.
TEST(PublishedTokenizer, tiktoken_gives_the_ids_of_gpt2) {
  const fs::path file = kShared / "tokenizers/tiktoken/r50k_base.json";
  if (!fs::exists(file))
    GTEST_SKIP() << file << " is absent: published tokenizers are not in the repository";
  const auto golden = parse_json(read_file(kShared / "tokenizer_goldens/gpt2.json"));
  const auto tokenizer = load_tokenizer(file);
  EXPECT_EQ(tokenizer->encode("<|endoftext|>"), std::vector<int32_t>{50256});
  for (const auto& entry : golden.at("cases")) {
    const auto text = entry.at("text").get<std::string>();
    EXPECT_EQ(tokenizer->encode(text), entry.at("ids").get<std::vector<int32_t>>())
        << "text: " << text;
  }
  const auto gpt2 = load_tokenizer(kShared / "tokenizers/gpt2");
  for (const char* name : {"german.txt", "address.txt"}) {
    const std::string text = read_file(kShared / "tokenizer_goldens/cs336" / name);
    EXPECT_EQ(tokenizer->encode(text), gpt2->encode(text)) << name;
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text) << name;
  }
}

TEST(PublishedTokenizer, a_tokenizer_model_may_be_a_tiktoken_file) {
  const fs::path file = kShared / "tokenizers/tiktoken/test_tiktoken.model";
  if (!fs::exists(file))
    GTEST_SKIP() << file << " is absent: published tokenizers are not in the repository";
  const auto tokenizer = load_tokenizer(file);
  EXPECT_EQ(tokenizer->num_tokens(), 2000);
  EXPECT_EQ(tokenizer->encode(std::string("\x01")), std::vector<int32_t>{1});
  for (const std::string& text : c4_texts(100))
    ASSERT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
}

// A vocabulary and merges that another trainer made: GPT-2's file form, special token first.
TEST(PublishedTokenizer, the_reference_of_cs336_loads_from_vocab_and_merges) {
  const fs::path source = kShared / "tokenizer_goldens/cs336";
  if (!fs::exists(source))
    GTEST_SKIP() << source << " is absent: published tokenizers are not in the repository";
  const fs::path folder = fs::path(testing::TempDir()) / "rhea_cs336";
  fs::create_directories(folder);
  write_file_atomic(folder / "vocab.json", read_file(source / "train-bpe-reference-vocab.json"));
  write_file_atomic(folder / "merges.txt", read_file(source / "train-bpe-reference-merges.txt"));
  const auto tokenizer = load_tokenizer(folder);
  const auto vocab = parse_json(read_file(folder / "vocab.json"));
  for (const auto& [token, id] : vocab.items())
    EXPECT_EQ(tokenizer->token_id(token), id.get<int32_t>()) << token;
  EXPECT_EQ(tokenizer->encode(" the"), std::vector<int32_t>{vocab.at("\u0120the")});
  for (const char* name : {"german.txt", "address.txt"}) {
    const std::string text = read_file(source / name);
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text) << name;
  }
  fs::remove_all(folder);
}

struct LlamaCppCase {
  const char* vocabulary;
  const char* tokenizer;
};
class LlamaCppTokenizer : public testing::TestWithParam<LlamaCppCase> {};

TEST_P(LlamaCppTokenizer, gives_the_ids_of_llama_cpp) {
  const fs::path stem = kShared / "tokenizer_goldens/llama.cpp" /
                        (std::string("ggml-vocab-") + GetParam().vocabulary + ".gguf");
  if (!fs::exists(stem.string() + ".inp"))
    GTEST_SKIP() << stem << ".inp is absent: it is not in the repository";
  const auto tokenizer = load_tokenizer(kShared / "tokenizers" / GetParam().tokenizer);
  const std::string input = read_file(stem.string() + ".inp");
  std::istringstream output(read_file(stem.string() + ".out"));
  const std::string separator = "\n__ggml_vocab_test__\n";
  EncodeOptions options;
  options.add_specials = false;
  size_t at = 0;
  int cases = 0;
  for (std::string line; std::getline(output, line); ++cases) {
    ASSERT_LE(at, input.size());
    const size_t end = input.find(separator, at);
    const std::string text = input.substr(at, end - at);
    at = end == std::string::npos ? input.size() + 1 : end + separator.size();
    std::vector<int32_t> expected;
    std::istringstream numbers(line);
    for (int32_t id = 0; numbers >> id;) expected.push_back(id);
    EXPECT_EQ(tokenizer->encode(text, options), expected) << "case " << cases << ": " << text;
  }
  EXPECT_GT(cases, 40);
}

INSTANTIATE_TEST_SUITE_P(
    llama_cpp, LlamaCppTokenizer,
    testing::Values(LlamaCppCase{"gpt-2", "gpt2"}, LlamaCppCase{"llama-bpe", "llama3_2"},
                    LlamaCppCase{"llama-spm", "sentencepiece/tokenizer.llama2.model"},
                    LlamaCppCase{"qwen2", "qwen3"}, LlamaCppCase{"qwen2", "qwen2-vocab-merges"}));

TEST(PublishedTokenizer, stories260K_begins_with_bos_and_decodes_its_golden_text) {
  const fs::path folder = kShared / "weights/stories260K";
  if (!fs::exists(folder))
    GTEST_SKIP() << folder << " is absent: published weights are not in the repository";
  const auto golden = parse_json(read_file(folder / "golden.json"));
  const auto tokenizer = load_tokenizer(folder);
  const auto ids = golden.at("greedy_ids").get<std::vector<int32_t>>();
  EXPECT_EQ(tokenizer->decode(ids, /*skip_special=*/true), golden.at("text").get<std::string>());
  EXPECT_EQ(tokenizer->encode("").front(), 1);
  EXPECT_EQ(tokenizer->encode(golden.at("text").get<std::string>()), ids);
}

}  // namespace
}  // namespace rhea::tokenizer
