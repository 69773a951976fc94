// Published tokenizers as GGUF files have them: vocabulary, merges and the name of the way that
// text is cut must give the published ids.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/gguf/published.h"
#include "rhea/components/gguf/test_bytes.h"
#include "rhea/components/tokenizer/tokenizer.h"
#include "tests/support/temp_folder.h"

namespace rhea::gguf {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kShared = RHEA_SHARED_DIR "/data";

// A file of `tokenizer` (the text of a tokenizer.json) with hardly a model in it.
std::string gguf_of(const json& tokenizer, std::string_view cut) {
  const json& model = tokenizer.at("model");
  constexpr int32_t kNormal = 1, kControl = 3, kUnused = 5;
  std::vector<std::string> tokens;
  std::vector<int32_t> kinds;
  const auto put = [&](const std::string& token, size_t id, int32_t kind) {
    for (; tokens.size() <= id; kinds.push_back(kUnused))
      tokens.push_back("[unused" + std::to_string(tokens.size()) + "]");
    tokens[id] = token;
    kinds[id] = kind;
  };
  for (const auto& [token, id] : model.at("vocab").items()) put(token, id, kNormal);
  for (const json& added : tokenizer.at("added_tokens"))
    put(added.at("content"), added.at("id"), kControl);
  std::vector<std::string> merges;
  for (const json& merge : model.at("merges"))
    merges.push_back(merge.is_string()
                         ? merge.get<std::string>()
                         : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  Bytes bytes;
  bytes.header(1, 12)
      .text_field("general.architecture", "qwen2")
      .count_field("qwen2.block_count", 1)
      .count_field("qwen2.context_length", 8)
      .count_field("qwen2.embedding_length", 2)
      .count_field("qwen2.feed_forward_length", 2)
      .count_field("qwen2.attention.head_count", 1)
      .string("qwen2.attention.layer_norm_rms_epsilon")
      .number<uint32_t>(6)
      .number(1e-5F)
      .text_field("tokenizer.ggml.model", "gpt2")
      .text_field("tokenizer.ggml.pre", cut)
      .texts_field("tokenizer.ggml.tokens", tokens)
      .kinds_field("tokenizer.ggml.token_type", kinds)
      .texts_field("tokenizer.ggml.merges", merges)
      .tensor("token_embd.weight", {2, tokens.size()}, 0, 0)
      .data(tokens.size() * 8);
  return bytes.text();
}

// Of each text of `cases`, by the tokenizer of a GGUF file.
std::vector<std::vector<int32_t>> ids_of(const std::string& gguf, const json& cases) {
  const support::TempFolder temp;
  const fs::path file = temp.path() / "x.gguf";
  std::ofstream(file, std::ios::binary) << gguf;
  const PublishedFiles files = published_files(File(file));
  std::ofstream(temp.path() / "tokenizer.json") << files.tokenizer_json;
  std::ofstream(temp.path() / "tokenizer_config.json") << files.tokenizer_config_json;
  const auto tokenizer = tokenizer::load_tokenizer(temp.path());
  std::vector<std::vector<int32_t>> ids;
  for (const json& one : cases)
    ids.push_back(tokenizer->encode(one.at("text").get<std::string>(), {.add_bos = false}));
  return ids;
}

int num_different(const std::string& gguf, const json& cases) {
  const auto ids = ids_of(gguf, cases);
  int different = 0;
  for (size_t i = 0; i < ids.size(); ++i)
    different += ids[i] == cases[i].at("ids").get<std::vector<int32_t>>() ? 0 : 1;
  return different;
}

struct Published {
  const char* folder;  // of the tokenizer, and the name of its ids
  const char* cut;     // tokenizer.ggml.pre
};

class Cuts : public testing::TestWithParam<Published> {};

TEST_P(Cuts, GiveThePublishedIds) {
  const auto& [folder, cut] = GetParam();
  const fs::path file = kShared / "tokenizers" / folder / "tokenizer.json";
  if (!fs::exists(file))
    GTEST_SKIP() << file << " is absent; this tokenizer is read from the shared data.";
  const json golden =
      parse_json(read_file(kShared / "tokenizer_goldens" / (std::string(folder) + ".json")));
  ASSERT_GT(golden.at("cases").size(), 50U);
  EXPECT_EQ(num_different(gguf_of(parse_json(read_file(file)), cut), golden.at("cases")), 0);
}

INSTANTIATE_TEST_SUITE_P(Published, Cuts,
                         testing::Values(Published{"gpt2", "gpt-2"},
                                         Published{"llama3_2", "llama-bpe"},
                                         Published{"qwen3", "qwen2"},
                                         Published{"gptoss", "gpt-4o"}),
                         [](const auto& test) { return std::string(test.param.folder); });

// Tekken's expression with a vocabulary that joins across every boundary that it leaves open
// (tools/make_gguf_goldens.py): other cuts give other ids.
TEST(Cut, TekkenCutsAsPublished) {
  const fs::path data = RHEA_SOURCE_DIR "/tests/data/gguf";
  const json golden = parse_json(read_file(data / "tekken.json"));
  const std::string file = read_file(data / "tekken.gguf"), name = "tekken";
  EXPECT_EQ(num_different(file, golden.at("cases")), 0);
  for (const char* other : {"gpt-4o", "llama3"}) {
    std::string changed = file;
    changed.replace(changed.find(name), name.size(), other);
    EXPECT_GT(num_different(changed, golden.at("cases")), 2) << other;
  }
}

}  // namespace
}  // namespace rhea::gguf
