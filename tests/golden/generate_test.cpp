// Greedy text of a published model, token by token over the key-value cache.
#include "rhea/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/safetensors/reader.h"
#include "rhea/components/safetensors/writer.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

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

TEST(Generate, EveryGoldenModelHasAText) {
  std::set<std::string> expected, found;
  for (const std::string& name : models_with_text()) expected.insert(name);
  for (const auto& folder : std::filesystem::directory_iterator(kGolden / "models"))
    found.insert(folder.path().filename());
  EXPECT_EQ(expected, found);
}

constexpr int64_t kPositions = 192;  // POSITIONS, LENGTH_ROPES, ... of make_greedy.py

bool follows_the_length(const nlohmann::json& config) {
  const auto rope = config.find("rope_parameters");
  if (rope == config.end() || !rope->is_object()) return false;
  const std::string type = rope->value("rope_type", "");
  return type == "dynamic" || type == "longrope";
}

bool has(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(
      parts, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

// The model of `folder` with its layers multiplied by `scale`, its embedding divided, and at least
// kPositions positions, of which a learned table is repeated: what make_greedy.py gave
// Transformers.
void write_variant(const std::filesystem::path& folder, const std::filesystem::path& out,
                   float scale) {
  auto config = parse_json(read_file(folder / "config.json"));
  int64_t more = 0;
  for (const char* field : {"max_position_embeddings", "n_positions", "max_seq_len"}) {
    if (follows_the_length(config) || !config.contains(field) || config[field] >= kPositions)
      continue;
    more = kPositions - config[field].get<int64_t>();
    config[field] = kPositions;
  }
  std::ofstream(out / "config.json") << config;
  const safetensors::File file(folder / "model.safetensors");
  std::vector<safetensors::TensorView> tensors = file.tensors();
  std::vector<std::vector<float>> changed;
  changed.reserve(tensors.size());
  for (auto& tensor : tensors) {
    const bool table = has(tensor.name, {"wpe.weight", "embed_positions.weight"});
    const float factor = has(tensor.name, {".layers.", ".h.", ".blocks."}) ? scale
                         : has(tensor.name, {"embed_tokens.weight", "wte.weight",
                                             "word_embeddings.weight", "embed_in.weight"})
                             ? 1 / scale
                             : 1;
    if (factor == 1 && !table) continue;
    const auto old = safetensors::read_vector<float>(tensor);
    auto& values = changed.emplace_back(old);
    if (table) {
      tensor.shape[0] += more;
      values.resize(static_cast<size_t>(tensor.shape[0] * tensor.shape[1]));
    }
    for (size_t i = 0; i < values.size(); ++i) values[i] = old[i % old.size()] * factor;
    tensor.bytes = std::as_bytes(std::span(values));
  }
  safetensors::write_file(out / "model.safetensors", tensors);
}

std::vector<int32_t> prompt_of(int64_t length, int64_t seed, int64_t vocab_size) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < length; ++i)
    ids.push_back(static_cast<int32_t>((7 * i * i + (5 + seed) * i + 3 * seed + 1) % vocab_size));
  return ids;
}

TEST_P(GreedyText, EqualsTransformers) {
  const auto golden = parse_json(read_file(kGolden / "greedy.json")).at(GetParam());
  const support::TempFolder temp;
  write_variant(kGolden / "models" / GetParam(), temp.path(), golden.at("scale"));
  ThreadPool pool(2);
  const PublishedModel model(temp.path());
  bool long_prompt = false;
  for (const auto& text : golden.at("texts")) {
    const auto expected = text.at("greedy").get<std::vector<int32_t>>();
    EXPECT_GE(std::set(expected.begin(), expected.end()).size(), 5U) << "hardly a text";
    const auto prompt = prompt_of(text.at("length"), text.at("seed"), model.decoder().vocab_size());
    long_prompt |= prompt.size() == 150;
    Generator generator(model, static_cast<int64_t>(prompt.size() + expected.size()), pool);
    EXPECT_EQ(generator.generate(prompt, static_cast<int64_t>(expected.size()), {}, {}), expected)
        << prompt.size() << " tokens before";
  }
  EXPECT_TRUE(long_prompt) << "a prompt must take several passes";
}

INSTANTIATE_TEST_SUITE_P(Models, GreedyText, testing::ValuesIn(models_with_text()),
                         [](const auto& test) { return test.param; });

// Its graphs read f32. Weights in two bytes are refused, not misread.
TEST(Generate, WeightsInBf16AreRefusedWithBothDtypes) {
  ThreadPool pool(2);
  const PublishedModel model(kGolden / "models/llama3_rope_tied", &pool, DType::bf16);
  const std::string error = support::error_of([&] { Generator(model, 8, pool); });
  EXPECT_THAT(error, testing::ContainsRegex("the parameter model[.].* is held as bf16.*, and the "
                                            "graph reads it as f32"));
  const nn::Parameter& first = model.parameters().front();
  EXPECT_NE(model.data(first.fqn, {DType::bf16, first.shape}), nullptr);
  EXPECT_THAT(support::error_of([&] {
                model.data("lm_tail", {DType::bf16, first.shape});
              }),
              testing::HasSubstr("the model has no parameter lm_tail"));
}

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
