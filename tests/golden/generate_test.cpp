// Greedy text of a published model, token by token over the key-value cache.
#include "rhea/generate.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace rhea {
namespace {

TEST(Generate, GreedyIdsOfStories260K) {
  const std::filesystem::path folder = RHEA_SHARED_DIR "/data/weights/stories260K";
  if (!std::filesystem::exists(folder / "golden.json"))
    GTEST_SKIP() << folder << " is absent; these weights are read from the shared data.";
  const auto golden = nlohmann::json::parse(std::ifstream(folder / "golden.json"));
  const auto prompt = golden.at("prompt_ids").get<std::vector<int32_t>>();
  const auto expected = golden.at("greedy_ids").get<std::vector<int32_t>>();
  ASSERT_GT(expected.size(), prompt.size());

  ThreadPool pool(2);
  const PublishedModel model(folder, pool);
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

}  // namespace
}  // namespace rhea
