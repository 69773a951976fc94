// Converters of a run in its checkpoints: what a resume with others says.
#include <fstream>

#include "tests/runs/run_test.h"

namespace rhea {
namespace {

class Converters : public RunTest {
 protected:
  // `steps` steps of the 6 M parameters of a llama3 run in one folder, on tokens that are there.
  Outcome train_as(const std::string& config, int steps, const Words& more = {}) {
    const std::vector<int32_t> ids(16, 7);
    const fs::path tokens = temp_.path() / "tokens.safetensors";
    if (!fs::exists(tokens)) support::write_tokens(tokens, {1, 1, 16}, ids, ids);
    const Words words = {"train",
                         "--dump_folder=" + dump().string(),
                         "--module=llama3",
                         "--config=" + config,
                         "--dataloader.dataset=tokens",
                         "--dataloader.dataset_path=" + tokens.string(),
                         "--training.local_batch_size=1",
                         "--training.seq_len=16",
                         fmt::format("--training.steps={}", steps),
                         "--checkpoint.enable",
                         "--debug.seed=1",
                         "--metrics.peak_flops=1e12"};
    return run(
        support::join(words, more.empty() ? Words{"--checkpoint.no_last_save_model_only"} : more));
  }
  void expect_ends(const Outcome& outcome) { ASSERT_EQ(outcome.code, 0) << outcome.output; }
  void expect_warning(const Outcome& outcome, const char* saved, const char* active) {
    ASSERT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_THAT(outcome.output, testing::ContainsRegex(fmt::format(
                                    "was saved with {}.*, and this run has {}.*: the model "
                                    "computes something else from here on",
                                    saved, active)));
  }
};

TEST_F(Converters, AResumeWithAnotherFormatOfProductsWarns) {
  expect_ends(train_as("llama3_debugmodel_float8", 1));
  const Outcome same = train_as("llama3_debugmodel_float8", 2);
  ASSERT_EQ(same.code, 0) << same.output;
  EXPECT_THAT(same.output, Not(HasSubstr("was saved with")));
  expect_warning(train_as("llama3_debugmodel", 3), "Float8LinearConverter", "no converters");
  const Outcome plain = train_as("llama3_debugmodel", 4);
  EXPECT_THAT(plain.output, Not(HasSubstr("was saved with")));
  expect_warning(train_as("llama3_debugmodel_float8", 5), "no converters",
                 "Float8LinearConverter .\"recipe_name\": \"rowwise\"");
}

TEST_F(Converters, AdaptersThatAreMissingOrNewAreNamed) {
  expect_ends(train_as("llama3_debugmodel_lora", 1));
  const Outcome without = train_as("llama3_debugmodel", 2);
  EXPECT_EQ(without.code, 2);
  EXPECT_THAT(without.output, HasSubstr("step-1 was saved with LoRA adapters, and the model of "
                                        "this run has none; give it the LoRAConverter"));
  fs::remove_all(dump());
  expect_ends(train_as("llama3_debugmodel", 1));
  const Outcome with = train_as("llama3_debugmodel_lora", 2);
  EXPECT_EQ(with.code, 2);
  EXPECT_THAT(with.output, HasSubstr("step-1 was saved without LoRA adapters, and the model of "
                                     "this run has 43; start a new run from its weights"));
}

// hf_assets_path of a native debug run holds a tokenizer and no weights.
TEST_F(Converters, AdaptersOfARunWithoutPublishedWeightsNameNoBaseModel) {
  const Outcome outcome =
      train_as("llama3_debugmodel_lora", 1,
               {"--checkpoint.last_save_model_only", "--checkpoint.last_save_in_hf"});
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("adapter_config.json names no base model"));
  const std::string expected = "\"base_model_name_or_path\": null";
  EXPECT_THAT(read_file(dump() / "checkpoint/export/step-1/adapter_config.json"),
              HasSubstr(expected));
  const fs::path alone = temp_.path() / "alone";
  const Outcome converted = run({"convert", "--from=" + (dump() / "checkpoint/step-1").string(),
                                 "--to=" + alone.string(), "--only_adapters"});
  ASSERT_EQ(converted.code, 0) << converted.output;
  EXPECT_THAT(read_file(alone / "adapter_config.json"), HasSubstr(expected));

  // What the warning says to do.
  EXPECT_THAT(converted.output, HasSubstr("--only_adapters --hf_assets_path BASE"));
  const fs::path named = temp_.path() / "named";
  const Outcome again =
      run({"convert", "--from=" + (dump() / "checkpoint/step-1").string(), "--to=" + named.string(),
           "--only_adapters", "--hf_assets_path=" + temp_.path().string()});
  ASSERT_EQ(again.code, 0) << again.output;
  EXPECT_THAT(again.output, Not(HasSubstr("names no base model")));
  EXPECT_THAT(read_file(named / "adapter_config.json"),
              HasSubstr("\"base_model_name_or_path\": \"" + temp_.path().string() + "\""));
}

}  // namespace
}  // namespace rhea
