// Runs of published folders: what the log says about structure and weights, and the numbers of
// hf_overrides.
#include <cmath>
#include <nlohmann/json.hpp>

#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/safetensors/reader.h"
#include "tests/runs/run_test.h"

namespace rhea {
namespace {

const Words kPublished = {"--module=transformers_modeling_backend",
                          "--config=transformers_modeling_backend_full"};

class Published : public RunTest {
 protected:
  // A run of `words` on the batch of a golden folder.
  Outcome train_golden(const fs::path& folder, const Words& words) {
    const safetensors::File golden(folder / "golden.safetensors");
    const auto ids = safetensors::read_vector<int32_t>(golden.at("input_ids"));
    const auto labels = safetensors::read_vector<int32_t>(golden.at("labels"));
    const auto& shape = golden.at("input_ids").shape;
    support::write_tokens(temp_.path() / "batch.safetensors", {1, shape[0], shape[1]}, ids, labels);
    return train(support::join(
        support::join(kPublished,
                      {"--dataloader.dataset=tokens",
                       "--dataloader.dataset_path=" + (temp_.path() / "batch.safetensors").string(),
                       fmt::format("--training.local_batch_size={}", shape[0]),
                       fmt::format("--training.seq_len={}", shape[1]), "--training.steps=1"}),
        words));
  }
  static double first_loss(const std::string& output) {
    const auto at = output.find("First loss: ");
    return at == std::string::npos ? NAN : std::stod(output.substr(at + 12));
  }
  const fs::path golden_ = RHEA_SOURCE_DIR "/tests/data/golden/models/qwen3";
};

// P11: the first loss tells published weights from random ones, and the log where they came from.
TEST_F(Published, TheFirstLossIsThatOfTransformersOnTheSameTokens) {
  const auto expected = parse_json(read_file(golden_ / "golden.json"));
  const Outcome outcome = train_golden(
      golden_, {"--hf_model=" + golden_.string(), "--checkpoint.enable",
                "--checkpoint.initial_load_in_hf", "--checkpoint.initial_load_model_only",
                "--checkpoint.initial_load_path=" + golden_.string()});
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NEAR(first_loss(outcome.output), expected.at("loss").get<double>(), 1e-5);
  EXPECT_THAT(outcome.output,
              HasSubstr("Model structure from " + golden_.string() + "/config.json\n"));
  EXPECT_THAT(outcome.output, HasSubstr("Loaded 25 tensors from "));
  EXPECT_THAT(outcome.output, HasSubstr("Weights: 25 tensors, 29,244 parameters, loaded from " +
                                        golden_.string() + "\n"));
  EXPECT_THAT(outcome.output, HasSubstr("(all 103 tokens equally likely: 4.63473)\n"));

  const Outcome random = train_golden(golden_, {"--hf_assets_path=" + golden_.string()});
  ASSERT_EQ(random.code, 0) << random.output;
  EXPECT_THAT(random.output, HasSubstr("Weights: 25 tensors, 29,244 parameters, drawn at random"));
  EXPECT_NEAR(first_loss(random.output), std::log(103) + 0.5, 0.3) << "heads of D^-0.5";
}

TEST_F(Published, ANameThatIsNoFolderIsALabel) {
  const Outcome outcome =
      train_golden(golden_, {"--hf_model=Qwen/Qwen3-tiny", "--hf_assets_path=" + golden_.string()});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("Model structure from " + golden_.string()));
}

TEST_F(Published, OverridesMakeAnotherModelAndTheExportSaysSo) {
  const Outcome outcome =
      train_golden(golden_, {"--hf_assets_path=" + golden_.string(), "--hf_overrides.n_layers=1",
                             "--hf_overrides.intermediate_size=24", "--hf_overrides.rope_theta=5e5",
                             "--checkpoint.enable", "--checkpoint.last_save_model_only",
                             "--checkpoint.last_save_in_hf"});
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("; replaced by hf_overrides: num_hidden_layers 2 -> 1, "));
  const auto config = parse_json(read_file(dump() / "checkpoint/export/step-1/config.json"));
  EXPECT_EQ(config.at("num_hidden_layers"), 1);
  EXPECT_EQ(config.at("intermediate_size"), 24);
  const safetensors::Weights weights(dump() / "checkpoint/export/step-1");
  EXPECT_EQ(weights.at("model.layers.0.mlp.up_proj.weight").shape[0], 24);
  EXPECT_EQ(weights.find("model.layers.1.mlp.up_proj.weight"), nullptr);
  // Its own export is the same model, without the options.
  const fs::path exported = dump() / "checkpoint/export/step-1";
  const Outcome again =
      train_golden(golden_, {"--dump_folder=" + (temp_.path() / "again").string(),
                             "--hf_assets_path=" + exported.string(), "--checkpoint.enable",
                             "--checkpoint.initial_load_in_hf"});
  EXPECT_EQ(again.code, 0) << again.output;
}

// Weights of other sizes are refused by name, before a step.
TEST_F(Published, WeightsOfOtherSizesAreRefused) {
  const Outcome outcome =
      train_golden(golden_, {"--hf_assets_path=" + golden_.string(), "--hf_overrides.n_layers=1",
                             "--checkpoint.enable", "--checkpoint.initial_load_in_hf"});
  EXPECT_EQ(outcome.code, 2) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("model.layers.1.mlp.up_proj.weight"));
}

// W21: what the run sets itself is no disagreement with the file.
TEST_F(Published, AnOptionMayDifferFromTheConfigOfTheWeights) {
  const Outcome outcome = train_golden(
      golden_, {"--hf_assets_path=" + golden_.string(), "--hf_overrides.rope_theta=2e4",
                "--checkpoint.enable", "--checkpoint.initial_load_in_hf"});
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const auto expected = parse_json(read_file(golden_ / "golden.json"));
  EXPECT_GT(std::abs(first_loss(outcome.output) - expected.at("loss").get<double>()), 1e-4)
      << "the other theta is in use";
}

TEST_F(Published, OverridesSayWhenNothingReadsThem) {
  const Outcome outcome =
      run({"config", "--module=llama3", "--config=llama3_debugmodel", "--hf_overrides.n_layers=3"});
  EXPECT_THAT(outcome.output, HasSubstr("hf_overrides.n_layers has no effect: the sizes of this "
                                        "model do not come from a config.json"));
}

TEST_F(Published, ARelativeInitialPathIsRefused) {
  const Outcome outcome =
      train(support::join(kPublished, {"--checkpoint.enable", "--checkpoint.initial_load_in_hf",
                                       "--checkpoint.initial_load_path=assets/x"}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.output, HasSubstr("initial_load_path must be an absolute path"));
}

// The debug runs need no file beside the tree, from any working folder.
TEST_F(Published, TheDebugModelsRunAsTheyAre) {
  const struct {
    const char* config;
    const char* said;
  } cases[] = {
      {"transformers_modeling_backend_debugmodel",
       "qwen3_debugmodel/config.json; replaced by hf_overrides: num_hidden_layers 8 -> 2, "
       "num_key_value_heads 8 -> 16"},
      {"transformers_modeling_backend_debugmodel_moe",
       "qwen3_moe_debugmodel/config.json; replaced by hf_overrides: hidden_size 256 -> 2048, "}};
  for (const auto& [config, said] : cases) {
    const Outcome outcome = run(
        {"train", "--module=hf", std::string("--config=") + config, "--dataloader.dataset=jsonl",
         "--dataloader.dataset_path=" + (temp_.path() / "text.jsonl").string(),
         "--training.steps=1", "--training.seq_len=64", "--training.local_batch_size=1",
         "--metrics.peak_flops=1e12"},
        {.working_folder = temp_.path()});
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr(said));
  }
}

}  // namespace
}  // namespace rhea
