// Runs of a model that the source tree does not have (examples/own_model), with a data set, a
// tokenizer, a metric sink, an optimizer, a decay and a loss of another file (parts.cpp).
#include <cmath>
#include <fstream>

#include "tests/runs/run_test.h"

namespace rhea {
namespace {

using testing::AllOf;

class Parts : public RunTest {
 protected:
  static void TearDownTestSuite() {
    delete cache_;
    cache_ = nullptr;
  }

  Outcome rhea(Words words) {
    if (cache_ == nullptr) cache_ = new support::TempFolder("plugins");
    support::Process::Options options;
    options.environment = {{"RHEA_CACHE_DIR", cache_->path().string()}};
    return run(words, options);
  }
  // `command` on the example's model with all parts, for `steps` steps into dump().
  Words with_parts(const char* command, int steps, const Words& more = {}) const {
    return support::join({command,
                          "--module=" RHEA_SOURCE_DIR "/examples/own_model/token_shift.cpp",
                          "--config=token_shift_debugmodel",
                          "--override.imports=" RHEA_SOURCE_DIR "/tests/parts/parts.cpp",
                          "--dump_folder=" + dump().string(),
                          "--debug.seed=3",
                          "--training.local_batch_size=2",
                          "--training.seq_len=32",
                          fmt::format("--training.steps={}", steps),
                          "--metrics.log_freq=1",
                          "--metrics.peak_flops=1e12",
                          "--dataloader.dataset=countdown",
                          "--optimizer.param_groups.0.optimizer_name=Lion",
                          "--optimizer.param_groups.0.optimizer_kwargs.eps=None",
                          "--optimizer.param_groups.0.optimizer_kwargs.weight_decay=None",
                          "--optimizer.param_groups.0.optimizer_kwargs.lr=1e-3",
                          "--optimizer.param_groups.0.optimizer_kwargs.more=lambda=0.01",
                          "--lr_scheduler.decay_type=halves",
                          "--lr_scheduler.total_steps=16",
                          "--lr_scheduler.warmup_steps=2",
                          "loss:ZLoss",
                          "--loss.z_weight=1e-4",
                          "--metrics.sinks=csv"},
                         more);
  }
  // What a run that begins anew logs for its steps.
  std::vector<support::StepRow> rows_of(const Words& words) {
    fs::remove_all(dump());
    const Outcome outcome = rhea(words);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    output_ = outcome.output;
    return support::read_rows(dump());
  }
  std::vector<std::string> csv_lines(const char* name = "losses.csv") const {
    std::ifstream file(dump() / name);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  static support::TempFolder* cache_;  // the plugins are compiled once
  std::string output_;
};
support::TempFolder* Parts::cache_ = nullptr;

TEST_F(Parts, TrainAModelThatTheSourceTreeDoesNotHave) {
  const Outcome outcome = rhea(with_parts("train", 14));
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(
      outcome.output,
      AllOf(HasSubstr("Building token_shift debugmodel"),
            HasSubstr("Optimizer Lion (model_part=0): 20 params [.*] {lr: 0.001, betas: (0.9, "
                      "0.95), lambda: 0.01}"),
            HasSubstr("Preparing countdown dataset from fifty countdowns"),
            HasSubstr("Training completed")));
  const auto rows = support::read_rows(dump());
  ASSERT_EQ(rows.size(), 14U);
  EXPECT_LT(rows.back().loss, rows.front().loss - 0.5) << "it learns to count down";
  EXPECT_DOUBLE_EQ(rows[0].lr, 0.5e-3) << "warm-up";
  EXPECT_DOUBLE_EQ(rows[4].lr, 1e-3);
  EXPECT_DOUBLE_EQ(rows[12].lr, 0.5e-3) << "the decay of the file";
  // The sink got the losses of the JSON lines.
  const auto lines = csv_lines();
  ASSERT_EQ(lines.size(), 14U);
  EXPECT_EQ(lines[6], fmt::format("7,{:.9g}", rows[6].loss));
}

TEST_F(Parts, ResumeToTheBitsOfARunThatWasNotStopped) {
  const Words saving = {"--checkpoint.enable", "--checkpoint.interval=6",
                        "--checkpoint.no_last_save_model_only"};
  ASSERT_EQ(rhea(with_parts("train", 6, saving)).code, 0);
  const auto half = support::read_step(dump() / "checkpoint/step-6");
  EXPECT_TRUE(half.contains("optimizer.state.layers.0.attention.share.momentum"));
  EXPECT_TRUE(half.contains("optimizer.state.tok_embeddings.weight.momentum"));
  const Outcome outcome = rhea(with_parts("train", 12, saving));
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("Training starts at step 7"));
  const auto resumed = support::read_step(dump() / "checkpoint/step-12");
  const auto rows = support::read_rows(dump());

  fs::remove_all(dump());
  ASSERT_EQ(rhea(with_parts("train", 12, saving)).code, 0);
  EXPECT_EQ(support::difference(support::read_step(dump() / "checkpoint/step-12"), resumed), "");
  EXPECT_EQ(support::read_rows(dump()), rows);
}

// The term that ZLoss adds is in what is minimised, not in the log alone.
TEST_F(Parts, TheLossAndItsOptionsAct) {
  const auto losses = [&](const char* weight) {
    Words words = with_parts("train", 3);
    std::erase(words, "--loss.z_weight=1e-4");
    return rows_of(support::join(words, {std::string("--loss.z_weight=") + weight}));
  };
  const auto without = losses("0"), with = losses("0.01");
  ASSERT_EQ(with.size(), 3U);
  // Every token is about equally likely at first: the log of the denominator is log(2048).
  EXPECT_NEAR(with[0].loss - without[0].loss, 0.01 * std::pow(std::log(2048), 2), 0.05);
  EXPECT_NE(with[0].grad_norm, without[0].grad_norm);
}

// The same run with nodes of its config replaced, and with the words that name the parts.
TEST_F(Parts, ReplaceNodesOfTheConfig) {
  const std::string folder = RHEA_SOURCE_DIR "/tests/parts/";
  const auto replacing = [&](const std::string& imports, const Words& more) {
    return rows_of(support::join(
        {"train", "--module=" RHEA_SOURCE_DIR "/examples/own_model/token_shift.cpp",
         "--config=token_shift_debugmodel", "--dump_folder=" + dump().string(), "--debug.seed=3",
         "--training.local_batch_size=2", "--training.seq_len=32", "--training.steps=4",
         "--metrics.log_freq=1", "--metrics.peak_flops=1e12", "--lr_scheduler.decay_type=halves",
         "--lr_scheduler.total_steps=16", "--lr_scheduler.warmup_steps=2",
         "--override.imports=" + folder + "parts.cpp," + imports},
        more));
  };
  const auto all = replacing(folder + "replacements.cpp", {});
  EXPECT_THAT(
      output_,
      AllOf(HasSubstr("[Override] lion: optimizer AdamW.Config -> OptimizerConfig"),
            HasSubstr("[Override] countdown: dataloader DataloaderConfig -> CountdownConfig"),
            HasSubstr("[Override] z_loss: loss ChunkedLossConfig -> ZLoss"),
            HasSubstr("Applied 3 override(s)"), HasSubstr("Optimizer Lion (model_part=0)"),
            HasSubstr("Preparing countdown dataset")));
  const auto two = replacing(folder + "replacements.cpp:lion," + folder + "replacements.cpp:z_loss",
                             {"--dataloader.dataset=countdown"});
  Words words = with_parts("train", 4);
  words.push_back("--optimizer.param_groups.0.optimizer_kwargs.betas=None");
  const auto named = rows_of(words);
  ASSERT_EQ(named.size(), 4U);
  EXPECT_EQ(two, named);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_NE(all[0].loss, named[0].loss) << "its countdowns begin elsewhere";
}

// The decay, the tokenizer and the sink of parts.cpp find their fields in the sections that
// sections.cpp puts into the run.
TEST_F(Parts, ReadWhatAReplacedSectionAdds) {
  const std::string file = "," RHEA_SOURCE_DIR "/tests/parts/sections.cpp";
  const auto greetings = [&](const std::string& imports, const Words& more) {
    Words words = with_parts("train", 14, more);
    for (std::string& word : words) {
      if (word.starts_with("--override.imports=")) word += imports;
      if (word.starts_with("--dataloader.dataset=")) word = "--dataloader.dataset=greetings";
    }
    return rows_of(words);
  };
  const auto stock = greetings("", {"--tokenizer.kind=bytes"});
  ASSERT_EQ(stock.size(), 14U);
  EXPECT_DOUBLE_EQ(stock[12].lr, 0.5e-3);

  EXPECT_EQ(greetings(file + R"(:capitals={"upper": false})", {}), stock) << "the same bytes";
  EXPECT_EQ(csv_lines().size(), 14U);

  const auto own = greetings(file, {});
  EXPECT_THAT(
      output_,
      AllOf(HasSubstr("[Override] own_file: metrics MetricsConfig -> CsvConfig\n"),
            HasSubstr("[Override] capitals: tokenizer TokenizerConfig -> BytesConfig\n"),
            HasSubstr("[Override] quarter: lr_scheduler LrSchedulerConfig -> HalvesConfig\n"),
            HasSubstr("Applied 3 override(s)")));
  ASSERT_EQ(own.size(), 14U);
  EXPECT_DOUBLE_EQ(own[4].lr, 1e-3);
  EXPECT_DOUBLE_EQ(own[12].lr, 0.25e-3);
  EXPECT_NE(own[0].loss, stock[0].loss) << "other tokens";
  EXPECT_EQ(csv_lines("mine.csv").size(), 14U);
  EXPECT_FALSE(fs::exists(dump() / "losses.csv"));
}

TEST_F(Parts, PlanKnowsTheStateOfTheOptimizer) {
  const Outcome outcome = rhea(with_parts("plan", 14));
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  std::istringstream lines(outcome.output);
  double parameters = 0, optimizer = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    double value = 0;
    if (!(words >> name >> value)) continue;
    if (name == "parameters") parameters = value;  // the second time in bytes
    if (name == "optimizer") optimizer = value;
  }
  EXPECT_EQ(optimizer, parameters) << "one tensor for each parameter\n" << outcome.output;
  EXPECT_EQ(optimizer, 4 * 217'536);
}

TEST_F(Parts, ATokenizerOfTheFileReadsATextOfTheFile) {
  Words words = with_parts("train", 4, {"--tokenizer.kind=bytes"});
  std::erase(words, "--dataloader.dataset=countdown");
  const Outcome outcome = rhea(support::join(words, {"--dataloader.dataset=greetings"}));
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("Preparing greetings dataset from twenty greetings"));
  // Documents of 14 or 15 bytes between two edges, 4 steps of 64 tokens.
  EXPECT_THAT(outcome.output, HasSubstr("Data: 17 documents"));
}

TEST_F(Parts, ExportsHaveTheNamesOfTheFamily) {
  const Outcome outcome = rhea(with_parts("train", 2,
                                          {"--checkpoint.enable", "--checkpoint.last_save_in_hf",
                                           "--checkpoint.export_dtype=bfloat16"}));
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  const fs::path folder = dump() / "checkpoint/export/step-2";
  const std::string header = read_file(folder / "model.safetensors").substr(0, 4096);
  for (const char* name : {"model.embed_tokens.weight", "model.layers.1.mixer.share",
                           "model.layers.0.mixer.gate.weight", "model.norm.weight"})
    EXPECT_THAT(header, HasSubstr(std::string("\"") + name + "\""));
  EXPECT_THAT(read_file(folder / "config.json"), HasSubstr("token_shift"));
}

TEST_F(Parts, WordsOfTheFileAreListedBesideTheOthers) {
  Words words = with_parts("train", 2);
  std::erase(words, "--lr_scheduler.decay_type=halves");
  std::erase(words, "--metrics.sinks=csv");
  const Outcome outcome =
      rhea(support::join(words, {"--lr_scheduler.decay_type=thirds", "--metrics.sinks=xml"}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("lr_scheduler.decay_type = 'thirds': expected one of: linear, sqrt, "
                              "cosine, halves"),
                    HasSubstr("tensorboard, csv")));
  const Outcome help = rhea(with_parts("train", 2, {"--help"}));
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.output, AllOf(HasSubstr("from outside: Lion ("), HasSubstr("parts.cpp)"),
                                 HasSubstr("loss:ZLoss")));
}

}  // namespace
}  // namespace rhea
