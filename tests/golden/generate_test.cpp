// Greedy text of a published model, token by token over the key-value cache.
#include "rhea/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/safetensors/reader.h"

namespace rhea {
namespace {

TEST(Generate, GreedyIdsOfStories260K) {
  const std::filesystem::path folder = RHEA_SHARED_DIR "/data/weights/stories260K";
  if (!std::filesystem::exists(folder / "golden.json"))
    GTEST_SKIP() << folder << " is absent; these weights are read from the shared data.";
  const auto golden = parse_json(read_file(folder / "golden.json"));
  const auto prompt = golden.at("prompt_ids").get<std::vector<int32_t>>();
  const auto expected = golden.at("greedy_ids").get<std::vector<int32_t>>();
  ASSERT_GT(expected.size(), prompt.size());

  ThreadPool pool(2);
  const PublishedModel model(folder);
  const auto capacity = static_cast<int64_t>(expected.size());
  Generator generator(model, capacity, pool);
  const auto num_new = static_cast<int64_t>(expected.size() - prompt.size());
  std::vector<int32_t> ids = prompt;
  const auto returned =
      generator.generate(prompt, num_new, {}, {}, [&](int32_t id) { ids.push_back(id); });
  EXPECT_EQ(ids, expected);
  EXPECT_EQ(returned, std::vector<int32_t>(ids.begin() + static_cast<std::ptrdiff_t>(prompt.size()),
                                           ids.end()));
}

// The token after each of some prompts is the one with the largest logit in Transformers; one
// generator serves them all, so nothing of a prompt is left for the next.
class FirstToken : public testing::TestWithParam<std::string> {};

TEST_P(FirstToken, IsTheOneOfTheGolden) {
  const std::filesystem::path folder =
      std::filesystem::path(RHEA_SOURCE_DIR "/tests/data/golden/models") / GetParam();
  const safetensors::File golden(folder / "golden.safetensors");
  const auto ids = safetensors::read_vector<int64_t>(golden.at("input_ids"));
  const auto logits = safetensors::read_vector<float>(golden.at("logits"));
  const int64_t row = golden.at("input_ids").shape[1], vocab = golden.at("logits").shape[2];
  ThreadPool pool(2);
  const PublishedModel model(folder);
  Generator generator(model, row + 1, pool);
  for (const int64_t length : {row, int64_t{3}, int64_t{1}, row - 2}) {
    const std::vector<int32_t> prompt(ids.begin(), ids.begin() + length);
    const float* last = logits.data() + (length - 1) * vocab;
    const auto expected = static_cast<int32_t>(std::max_element(last, last + vocab) - last);
    EXPECT_EQ(generator.generate(prompt, 1, {}, {}), std::vector{expected}) << length << " tokens";
  }
}

INSTANTIATE_TEST_SUITE_P(Mixtures, FirstToken,
                         testing::Values("mixtral", "qwen2_moe", "qwen3_moe_norm", "phimoe",
                                         "gpt_oss", "deepseek_v2_group", "deepseek_v3",
                                         "deepseek_v3_noq_yarn", "glm4_moe", "ernie4_5_moe",
                                         "qwen3_next"),
                         [](const auto& test) { return test.param; });

// Of every architecture, as Transformers' generate() makes it (tools/goldens/make_greedy.py).
class GreedyText : public testing::TestWithParam<std::string> {};

const std::filesystem::path kGolden = RHEA_SOURCE_DIR "/tests/data/golden";

std::vector<std::string> models_with_text() {
  std::vector<std::string> names;
  const auto texts = parse_json(read_file(kGolden / "greedy.json"));
  for (const auto& [name, text] : texts.items()) names.push_back(name);
  return names;
}

// Models that differ from another one in training only.
const std::set<std::string> kSameTextAsAnother = {"gemma_pad", "llama_pad"};

TEST(Generate, EveryGoldenModelHasAText) {
  std::set<std::string> expected = kSameTextAsAnother, found;
  for (const std::string& name : models_with_text()) expected.insert(name);
  for (const auto& folder : std::filesystem::directory_iterator(kGolden / "models"))
    found.insert(folder.path().filename());
  EXPECT_EQ(expected, found);
}

TEST_P(GreedyText, EqualsTransformers) {
  const auto text = parse_json(read_file(kGolden / "greedy.json")).at(GetParam());
  const auto prompt = text.at("prompt").get<std::vector<int32_t>>();
  const auto expected = text.at("greedy").get<std::vector<int32_t>>();
  ThreadPool pool(2);
  const PublishedModel model(kGolden / "models" / GetParam());
  Generator generator(model, static_cast<int64_t>(prompt.size() + expected.size()), pool);
  EXPECT_EQ(generator.generate(prompt, static_cast<int64_t>(expected.size()), {}, {}), expected);
}

INSTANTIATE_TEST_SUITE_P(Models, GreedyText, testing::ValuesIn(models_with_text()),
                         [](const auto& test) { return test.param; });

// As many tokens as the model has positions for, to the last one, and not one more.
TEST(Generate, EndsWhereThePositionsEnd) {
  const std::filesystem::path folder = RHEA_SHARED_DIR "/data/golden/models/llama";
  if (!std::filesystem::exists(folder))
    GTEST_SKIP() << folder << " is absent; these weights are read from the shared data.";
  ThreadPool pool(2);
  const PublishedModel model(folder);
  const int64_t limit = model.decoder().max_positions();
  const std::vector<int32_t> prompt = {5, 6, 7};
  Generator generator(model, limit, pool);
  EXPECT_EQ(generator.generate(prompt, limit - 3, {}, {}).size(), static_cast<size_t>(limit - 3));
  const auto refused = [&](const auto& body) {
    try {
      body();
      ADD_FAILURE() << "was accepted";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(std::to_string(limit)), std::string::npos)
          << error.what();
    }
  };
  for (const int64_t capacity :
       {limit + 1, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()})
    refused([&] { Generator(model, capacity, pool); });
  for (const int64_t more : {limit - 2, std::numeric_limits<int64_t>::max(), int64_t{-1}})
    refused([&] { generator.generate(prompt, more, {}, {}); });
}

TEST(Generate, LogitsThatAreNotNumbersMakeNoText) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const double temperature : {0.0, 1.0}) {
    const float bad[] = {1, nan, 2};
    try {
      sample_token(bad, 3, {.temperature = temperature}, 4);
      FAIL() << "was accepted";
    } catch (const ExitError& error) {
      EXPECT_EQ(error.code(), ExitCode::non_finite);
    }
  }
}

}  // namespace
}  // namespace rhea
