// Real config.json files through `rhea plan`: the parameters of the published model.
#include <algorithm>

#include "tests/runs/run_test.h"

namespace rhea {
namespace {

struct Published {
  const char* folder;
  int64_t parameters;
};

class Sizes : public RunTest, public testing::WithParamInterface<Published> {};

TEST_P(Sizes, PlanKnowsThePublishedCount) {
  const auto& [name, parameters] = GetParam();
  const fs::path folder = fs::path(RHEA_SHARED_DIR "/data/configs") / name;
  if (!fs::exists(folder))
    GTEST_SKIP() << folder << " is absent; these configs are read from the shared data.";
  const Words words = {"plan", "--module=hf", "--config=transformers_modeling_backend_full",
                       "--hf_assets_path=" + folder.string(), "--training.local_batch_size=1"};
  const Outcome outcome = run(words);
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr(fmt::format("  parameters           {}\n", parameters)));
}

INSTANTIATE_TEST_SUITE_P(
    Configs, Sizes,
    testing::Values(
        Published{"DeepSeek-V2-Lite", 15706484224}, Published{"DeepSeek-V3", 671026404352},
        Published{"GLM-4.5", 352797814784}, Published{"Mixtral-8x7B-v0.1", 46702792704},
        Published{"Qwen3-30B-A3B", 30532122624}, Published{"Qwen3-235B-A22B", 235093634560},
        Published{"gpt-oss-20b", 20914757184}, Published{"gpt-oss-120b", 116829156672},
        Published{"gpt2", 124439808}, Published{"phi-2", 2779683840},
        Published{"stablelm-2-zephyr-1_6b", 1644515328}, Published{"Llama-2-7b-hf", 6738415616},
        Published{"Llama-3.1-8B", 8030261248}, Published{"Llama-3.2-1B", 1235814400},
        Published{"Meta-Llama-3.1-405B", 405853388800}, Published{"Mistral-7B-v0.1", 7241732096},
        Published{"Mistral-Nemo-Instruct-2407", 12247782400},
        Published{"OLMo-2-1124-7B", 7298617344}, Published{"Phi-3.5-mini-instruct", 3821079552},
        Published{"Qwen2-0.5B", 494032768}, Published{"Qwen2.5-7B", 7615616512},
        Published{"gemma-2-2b", 2614341888}, Published{"gemma-3-1b-it", 999885952},
        Published{"SmolLM3-3B", 3075098624},
        // this file does not tie the head
        Published{"granite-3.1-2b-base", 2634188800}, Published{"Qwen3-0.6B", 596049920},
        Published{"Qwen3-1.7B", 1720574976}, Published{"Qwen3-4B", 4022468096},
        Published{"Qwen3-8B", 8190735360}, Published{"Qwen3-14B", 14768307200},
        Published{"Qwen3-32B", 32762123264}, Published{"SmolLM2-135M", 134515008},
        Published{"TinyLlama-1.1B-Chat-v1.0", 1100048384}),
    [](const auto& test) {
      std::string name = test.param.folder;
      std::ranges::replace_if(
          name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
      return name;
    });

}  // namespace
}  // namespace rhea
