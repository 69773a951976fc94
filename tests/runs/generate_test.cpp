// Text and logits of what was trained: step-N of a run, its weights-only save, its export.
#include "rhea/components/safetensors/reader.h"
#include "rhea/components/safetensors/writer.h"
#include "tests/runs/run_test.h"

namespace rhea {
namespace {

class Trained : public RunTest {
 protected:
  Outcome generate(const fs::path& folder, const Words& more = {}) {
    return run(support::join({"generate", "--model=" + folder.string(), "--prompt=0 follows",
                              "--max_new_tokens=8", "--ids"},
                             more));
  }
  std::vector<float> logits(const fs::path& folder) {
    // Not beside a config.json: a folder of a model is never written to.
    const fs::path results = temp_.path() / "results";
    fs::create_directories(results);
    const fs::path input = results / "ids.safetensors", out = results / "out.safetensors";
    const std::vector<int64_t> ids = {5, 17, 256, 99, 3, 1200, 8, 41};
    const std::vector<safetensors::TensorView> tensors = {
        {"input_ids", safetensors::ElementType::I64, {1, 8}, std::as_bytes(std::span(ids))}};
    safetensors::write_file(input, tensors);
    const Outcome outcome = run({"score", "--model=" + folder.string(), "--input=" + input.string(),
                                 "--output=" + out.string()});
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    const safetensors::File file(out);
    return safetensors::read_vector<float>(file.at("logits"));
  }
  void expect_same_model(const Words& more) {
    fs::remove_all(dump());
    const Words words = support::join({"--training.steps=2", "--checkpoint.enable"}, more);
    ASSERT_EQ(train(words).code, 0);
    const fs::path native = dump() / "checkpoint/step-2";
    const fs::path exported = dump() / "checkpoint/export/step-2";
    // The finished run, asked again, still writes the export.
    const Outcome weights = generate(exported);
    EXPECT_EQ(weights.code, 0) << weights.output;
    const Outcome again = train(support::join(words, {"--checkpoint.last_save_in_hf"}));
    ASSERT_EQ(again.code, 0) << again.output;
    ASSERT_TRUE(fs::exists(exported / "config.json")) << again.output;
    const Outcome ours = generate(native), theirs = generate(exported);
    EXPECT_EQ(ours.code, 0) << ours.output;
    EXPECT_EQ(theirs.code, 0) << theirs.output;
    EXPECT_EQ(ours.output, theirs.output);
    EXPECT_EQ(ours.output, weights.output);
    EXPECT_EQ(logits(native), logits(exported));
  }
};

TEST_F(Trained, TheCheckpointIsTheModelOfItsExport) {
  expect_same_model({});
  expect_same_model({"--module=hf", "--config=transformers_modeling_backend_full",
                     "--checkpoint.last_save_model_only"});
}

TEST_F(Trained, AFolderThatIsNoModelNamesTheOnesBelowIt) {
  ASSERT_EQ(train({"--training.steps=2", "--checkpoint.enable"}).code, 0);
  for (const fs::path& folder : {dump(), dump() / "checkpoint"}) {
    const Outcome outcome = generate(folder);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.output, HasSubstr((dump() / "checkpoint/step-2").string()));
    EXPECT_THAT(outcome.output, HasSubstr((dump() / "checkpoint/export/step-2").string()));
  }
  EXPECT_THAT(generate(temp_.path() / "nowhere").output,
              HasSubstr("holds no model: neither config.json (Hugging Face files) nor "
                        "manifest.json (a checkpoint of rhea train)"));
  const fs::path gone = temp_.path() / "gone";
  EXPECT_THAT(generate(dump() / "checkpoint/step-2", {"--tokenizer=" + gone.string()}).output,
              HasSubstr("give its place with --tokenizer"));
}

// tokenizer.path is the run's tokenizer, also of its export.
TEST_F(Trained, TheExportHoldsTheTokenizer) {
  ASSERT_EQ(
      train({"--training.steps=1", "--checkpoint.enable", "--checkpoint.last_save_in_hf"}).code, 0);
  const fs::path exported = dump() / "checkpoint/export/step-1";
  EXPECT_EQ(read_file(exported / "tokenizer.json"),
            read_file(RHEA_SOURCE_DIR "/tests/assets/tokenizer/tokenizer.json"));
}

}  // namespace
}  // namespace rhea
