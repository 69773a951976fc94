// Published tokenizers against ids that other programs computed (files of ../shared).
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

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
    texts.push_back(nlohmann::json::parse(line).at("text").get<std::string>());
  return texts;
}

class GoldenTokenizer : public testing::TestWithParam<const char*> {};

TEST_P(GoldenTokenizer, gives_the_ids_of_the_reference_and_its_text_back) {
  const fs::path golden_file = kShared / "tokenizer_goldens" / (std::string(GetParam()) + ".json");
  if (!fs::exists(golden_file))
    GTEST_SKIP() << golden_file << " is absent: published tokenizers are not in the repository";
  const auto golden = nlohmann::json::parse(read_file(golden_file));
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

INSTANTIATE_TEST_SUITE_P(llama_cpp, LlamaCppTokenizer,
                         testing::Values(LlamaCppCase{"gpt-2", "gpt2"},
                                         LlamaCppCase{"llama-bpe", "llama3_2"},
                                         LlamaCppCase{"qwen2", "qwen3"},
                                         LlamaCppCase{"qwen2", "qwen2-vocab-merges"}));

TEST(PublishedTokenizer, stories260K_begins_with_bos_and_decodes_its_golden_text) {
  const fs::path folder = kShared / "weights/stories260K";
  if (!fs::exists(folder))
    GTEST_SKIP() << folder << " is absent: published weights are not in the repository";
  const auto golden = nlohmann::json::parse(read_file(folder / "golden.json"));
  const auto tokenizer = load_tokenizer(folder);
  const auto ids = golden.at("greedy_ids").get<std::vector<int32_t>>();
  EXPECT_EQ(tokenizer->decode(ids, /*skip_special=*/true), golden.at("text").get<std::string>());
  EXPECT_EQ(tokenizer->encode("").front(), 1);
  EXPECT_EQ(tokenizer->encode(golden.at("text").get<std::string>()), ids);
}

// Prints the speed; not a limit, because the machine of the test is not known.
TEST(PublishedTokenizer, speed_of_encoding) {
  const fs::path folder = kShared / "tokenizers";
  if (!fs::exists(folder))
    GTEST_SKIP() << folder << " is absent: published tokenizers are not in the repository";
  std::string text;
  for (const std::string& document : c4_texts(100000)) text += document + "\n";
  for (const char* name : {"llama3_2", "qwen3", "gpt2"}) {
    const auto tokenizer = load_tokenizer(folder / name);
    const auto begin = std::chrono::steady_clock::now();
    const size_t count = tokenizer->encode(text).size();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const double rate = static_cast<double>(text.size()) / 1e6 / seconds;
    std::printf("%s: %zu tokens, %.1f MB/s\n", name, count, rate);
    EXPECT_GT(rate, 0.1);
  }
}

}  // namespace
}  // namespace rhea::tokenizer
