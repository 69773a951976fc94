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
  const support::TempFolder temp;
  const fs::path gguf = temp.path() / "x.gguf";
  std::ofstream(gguf, std::ios::binary) << gguf_of(parse_json(read_file(file)), cut);
  const PublishedFiles files = published_files(File(gguf));
  std::ofstream(temp.path() / "tokenizer.json") << files.tokenizer_json;
  std::ofstream(temp.path() / "tokenizer_config.json") << files.tokenizer_config_json;
  const auto tokenizer = tokenizer::load_tokenizer(temp.path());
  const json golden =
      parse_json(read_file(kShared / "tokenizer_goldens" / (std::string(folder) + ".json")));
  int num_cases = 0;
  for (const json& one : golden.at("cases")) {
    EXPECT_EQ(tokenizer->encode(one.at("text").get<std::string>(), {.add_bos = false}),
              one.at("ids").get<std::vector<int32_t>>())
        << one.at("text");
    ++num_cases;
  }
  EXPECT_GT(num_cases, 50);
}

INSTANTIATE_TEST_SUITE_P(Published, Cuts,
                         testing::Values(Published{"gpt2", "gpt-2"},
                                         Published{"llama3_2", "llama-bpe"},
                                         Published{"qwen3", "qwen2"},
                                         Published{"gptoss", "gpt-4o"}),
                         [](const auto& test) { return std::string(test.param.folder); });

}  // namespace
}  // namespace rhea::gguf
