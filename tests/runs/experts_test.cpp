// Runs of the native Qwen3 with experts: the bias that balances them through saves, resumes,
// exports and imports.
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "rhea/base/json.h"
#include "rhea/components/checkpoint/step_reader.h"
#include "rhea/components/safetensors/reader.h"
#include "tests/runs/run_test.h"

namespace rhea {
namespace {

constexpr const char* kBias = "layers.1.moe.expert_bias_E";
constexpr const char* kPublishedBias = "model.layers.1.mlp.gate.e_score_correction_bias";

class Experts : public RunTest {
 protected:
  void SetUp() override {
    std::ofstream(temp_.path() / "config.json")
        << R"({"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
 "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 2048, "hidden_act": "silu",
 "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "attention_bias": false, "num_experts": 6,
 "num_experts_per_tok": 2, "moe_intermediate_size": 24, "norm_topk_prob": true,
 "max_position_embeddings": 4096, "tie_word_embeddings": false})";
  }
  static Words native(int steps) {
    return {"--module=qwen3",
            "--config=qwen3_from_config",
            "--checkpoint.enable",
            "--checkpoint.interval=3",
            "--validator.no_enable",
            fmt::format("--training.steps={}", steps),
            "--training.global_batch_size=4"};
  }
  std::vector<float> stored_bias(const fs::path& step) const {
    std::vector<float> bias(6);
    checkpoint::StepReader(step).read({kBias, DType::f32, {6}, bias.data()});
    return bias;
  }
};

TEST_F(Experts, ResumeGoesOnWithTheSameBits) {
  const Outcome whole = train(native(6));
  ASSERT_EQ(whole.code, 0) << whole.output;
  EXPECT_THAT(whole.output, HasSubstr("Total parameter count: dense "));
  const auto expected = support::read_step(dump() / "checkpoint/step-6");
  ASSERT_TRUE(expected.contains(kBias));
  bool moved = false;
  for (const float b : stored_bias(dump() / "checkpoint/step-6")) moved = moved || b != 0;
  EXPECT_TRUE(moved);
  fs::remove_all(dump() / "checkpoint/step-6");
  fs::remove_all(dump() / "checkpoint/export");
  const Outcome rest = train(native(6));
  ASSERT_EQ(rest.code, 0) << rest.output;
  EXPECT_THAT(rest.output, HasSubstr("Training starts at step 4"));
  EXPECT_EQ(support::difference(support::read_step(dump() / "checkpoint/step-6"), expected), "");
}

TEST_F(Experts, LoadOfEachLayerIsAMetric) {
  ASSERT_EQ(train(native(2)).code, 0);
  std::ifstream file(dump() / "metrics/rank_0.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  const auto row = parse_json(line);
  EXPECT_GE(row.at("moe/max_over_mean_load/layers.1.moe").get<double>(), 1);
  EXPECT_LE(row.at("moe/max_over_mean_load/layers.1.moe").get<double>(), 3);
  EXPECT_EQ(row.at("moe/tokens_dropped"), 0);
}

TEST_F(Experts, W13AnExportHasNoBiasAndSaysSo) {
  const Outcome outcome = train(support::join(
      native(3), {"--checkpoint.last_save_in_hf", "--checkpoint.export_dtype=bfloat16"}));
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output,
              HasSubstr("Hugging Face has no key for them: layers.0.moe.expert_bias_E, "));
  const fs::path folder = dump() / "checkpoint/export/step-3";
  const safetensors::Weights weights(folder);
  const auto* expert = weights.find("model.layers.1.mlp.experts.5.up_proj.weight");
  ASSERT_NE(expert, nullptr);
  EXPECT_EQ(expert->shape, (std::vector<int64_t>{24, 32}));
  EXPECT_EQ(weights.find(kPublishedBias), nullptr);

  // and back: the bias starts at zero
  const Outcome again = train(support::join(
      native(1), {"--checkpoint.folder=other", "--checkpoint.initial_load_in_hf",
                  "--checkpoint.initial_load_path=" + folder.string(), "--debug.no_print_config"}));
  ASSERT_EQ(again.code, 0) << again.output;
  EXPECT_THAT(
      again.output,
      HasSubstr("Not in the files, because Hugging Face has no key for them: layers.0.moe."));
}

TEST_F(Experts, ANativeCheckpointIsReadWithItsBias) {
  ASSERT_EQ(train(native(3)).code, 0);
  const fs::path step = dump() / "checkpoint/step-3";
  const Outcome said =
      run({"generate", "--model=" + step.string(), "--prompt=1 follows", "--max_new_tokens=4"});
  EXPECT_EQ(said.code, 0) << said.output;
  const Outcome converted =
      run({"convert", "--from=" + step.string(), "--to=" + (temp_.path() / "converted").string()});
  EXPECT_EQ(converted.code, 0) << converted.output;
  EXPECT_THAT(converted.output, HasSubstr(kBias));
}

TEST_F(Experts, LoadCanBeForced) {
  const Outcome outcome = train(support::join(native(2), {"--debug.moe_force_load_balance"}));
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, Not(HasSubstr("the model is dense")));
  std::ifstream file(dump() / "metrics/rank_0.jsonl");
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  EXPECT_LT(parse_json(line).at("moe/max_over_mean_load/layers.0.moe").get<double>(), 1.05);
}

}  // namespace
}  // namespace rhea
