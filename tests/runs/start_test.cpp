// What a run says before its first step, in which order, and what it refuses before it allocates.
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "rhea/base/json.h"
#include "tests/runs/run_test.h"

namespace rhea {
namespace {

using Start = RunTest;

TEST_F(Start, LinesComeInTheOrderThatLogReadersRelyOn) {
  const Outcome outcome =
      train({"--training.steps=1", "--debug.print_config", "--debug.save_config_file=run.json",
             "--debug.deterministic", "--checkpoint.enable", "--metrics.peak_flops=1e12",
             "--activation_checkpoint.mode=selective"});
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  size_t at = 0;
  for (const char* line : {"rhea version: ",
                           "Building device mesh with parallelism: ",
                           "Successfully created meshes with active dimensions: ",
                           "Running with configs: ",
                           "Saved job configs to ",
                           "Deterministic algorithm enabled",
                           "Building llama3 from_config",
                           "CPU capacity: ",
                           "size: ",
                           "Applied SelectiveAC activation checkpointing to the model",
                           "Peak FLOPS used for computing MFU: ",
                           "CPU memory usage for model: ",
                           "Planned peak memory: ",
                           "Optimizer AdamW (model_part=0): ",
                           "Loading tokenizer from tokenizer.json",
                           "Preparing ",
                           "Checkpointing active. ",
                           "Trainer is initialized with local batch size ",
                           "No checkpoint was provided, this is a fresh start.",
                           "Training starts at step 1",
                           "step:  1  loss:"}) {
    const size_t found = outcome.output.find(line, at);
    ASSERT_NE(found, std::string::npos)
        << "after byte " << at << " there is no '" << line << "' in\n"
        << outcome.output;
    at = found;
  }
  EXPECT_THAT(outcome.output, testing::ContainsRegex("Compiled [0-9]+ programs: prepare, "));
}

// C4: one run names all of them, and nothing was built before.
TEST_F(Start, AllProblemsAtOnceBeforeAnythingIsBuilt) {
  const Words wrong = {"--debug.disable_passes=foo",
                       "--activation_checkpoint.force_recompute_mm_shapes_by_fqns=no.such.module",
                       "--optimizer.param_groups.0.pattern=no_such_parameter",
                       "--training.seq_len=5000",
                       "--dataloader.dataset_path=/no/such/file.jsonl",
                       "--tokenizer.path=/no/such/tokenizer",
                       "--checkpoint.keep_latest_k=1"};
  const Outcome outcome = train(wrong);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.output, HasSubstr("The configuration has 7 problems:"));
  for (const char* part :
       {"there is no pass 'foo'", "'no.such.module': is in the FQN of no matrix product",
        "5000 exceeds attention RoPE maximum supported sequence length 4096",
        "dataloader.dataset_path = /no/such/file.jsonl: there is no such file or folder",
        "tokenizer.path = /no/such/tokenizer: there is no such file or folder",
        "at least 2 checkpoint", "are in no optimizer.param_groups pattern"})
    EXPECT_THAT(outcome.output, HasSubstr(part));
  EXPECT_THAT(outcome.output, Not(HasSubstr("rhea version")));
  EXPECT_FALSE(fs::exists(dump()));
}

TEST_F(Start, APatternWithoutMatchIsNamed) {
  const Outcome outcome = train({"--optimizer.param_groups.1.pattern=no_such_parameter"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(
      outcome.output,
      HasSubstr("Optimizer param_groups pattern 'no_such_parameter' matched no parameters"));
}

TEST_F(Start, ConfigFailsForWhatNoMachineMends) {
  const Words recipe = {"config", "--module=llama3", "--config=llama3_70b"};
  EXPECT_EQ(run(recipe).code, 0) << "tensor parallel 8 is right on another machine";
  for (const Words& wrong :
       {Words{"--debug.disable_passes=foo"}, Words{"--training.steps=0"},
        Words{"--training.seq_len=10000000"},
        Words{"--activation_checkpoint.mode=selective",
              "--activation_checkpoint.force_recompute_mm_shapes_by_fqns=x.y"}}) {
    const Outcome outcome = run(support::join(recipe, wrong));
    EXPECT_EQ(outcome.code, 2) << wrong.back() << "\n" << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("\"model_spec\"")) << "the tree is printed";
  }
}

TEST_F(Start, TheCacheFolderOfTheOptionIsUsed) {
  const fs::path cache = temp_.path() / "cache";
  const Outcome first = train({"--training.steps=1", "--metrics.peak_flops=None",
                               "--executor.cache_dir=" + cache.string()});
  ASSERT_EQ(first.code, 0) << first.output;
  ASSERT_TRUE(fs::exists(cache / "peak.txt"));
  // The second run reads what is there.
  const std::string text = read_file(cache / "peak.txt");
  std::ofstream(cache / "peak.txt") << text.substr(0, text.rfind('\t')) << "\t7.125e+15\n";
  EXPECT_THAT(train({"--training.steps=1", "--metrics.peak_flops=None",
                     "--executor.cache_dir=" + cache.string()})
                  .output,
              HasSubstr("Peak FLOPS used for computing MFU: 7.125e+15"));
  const fs::path home = temp_.path() / "home";
  EXPECT_EQ(train({"--training.steps=1", "--metrics.peak_flops=None", "--executor.cache_dir="},
                  {.environment = {{"HOME", home.string()}, {"XDG_CACHE_HOME", home.string()}}})
                .code,
            0);
  EXPECT_FALSE(fs::exists(home)) << "an empty folder keeps nothing";
}

// No step needs it.
TEST_F(Start, AnUnknownPeakIsMeasuredAfterTheFirstStepAndIsInNoTimeOfIt) {
  const Outcome outcome =
      train({"--training.steps=2", "--metrics.peak_flops=None",
             "--executor.cache_dir=" + (temp_.path() / "unused_cache").string()});
  ASSERT_EQ(outcome.code, 0) << outcome.output;
  size_t at = 0;
  for (const char* line : {"Training starts at step 1", "Peak FLOPS used for computing MFU: ",
                           "step:  1  loss:", "step:  2  loss:"}) {
    const size_t found = outcome.output.find(line, at);
    ASSERT_NE(found, std::string::npos) << line << " is not in\n" << outcome.output;
    at = found;
  }
  EXPECT_EQ(outcome.output.find("Peak FLOPS"), outcome.output.rfind("Peak FLOPS"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("N/A"))) << "the first step has its MFU";

  std::map<std::string, double> seconds;  // of the first event of each name
  double first = 0;
  std::ifstream events(dump() / "structured_logs/rank_0.jsonl");
  for (std::string line; std::getline(events, line);) {
    const auto event = parse_json(line);
    const double time = 1e-6 * event.at("time_us").get<double>();
    if (first == 0) first = time;
    seconds.emplace(event.at("log_type_name"), time);
  }
  EXPECT_LE(seconds.at("optim_end"), seconds.at("measure_peak_start"));
  EXPECT_LE(seconds.at("measure_peak_end"), seconds.at("collect_dist_metrics_start"));
  std::ifstream rows(dump() / "metrics/rank_0.jsonl");
  std::string row;
  ASSERT_TRUE(std::getline(rows, row));
  // Of one run: at most what passed before the measurement; with it, all of it more.
  const double before = seconds.at("measure_peak_start") - first;
  const double measuring = seconds.at("measure_peak_end") - seconds.at("measure_peak_start");
  EXPECT_LT(parse_json(row).at("time_metrics/end_to_end(s)").get<double>(), before + measuring / 2);
}

TEST_F(Start, DefaultAssetsAreFoundFromAnotherFolder) {
  const Words words = {"train",
                       "--module=llama3",
                       "--config=llama3_debugmodel",
                       "--dataloader.dataset=jsonl",
                       "--dataloader.dataset_path=" + (temp_.path() / "text.jsonl").string(),
                       "--training.steps=1",
                       "--training.seq_len=64",
                       "--training.local_batch_size=1",
                       "--metrics.peak_flops=1e12"};
  const Outcome outcome = run(words, {.working_folder = temp_.path()});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, Not(HasSubstr("does not exist")));
  EXPECT_TRUE(fs::exists(temp_.path() / "outputs/metrics/rank_0.jsonl"));
}

// W18
TEST_F(Start, AnotherEndOfTextInConfigJsonIsSaidOnce) {
  const auto said = [&](const char* eos) {
    const std::string text = read_file(temp_.path() / "config.json");
    std::ofstream(temp_.path() / "config.json")
        << text.substr(0, text.rfind('}')) << ", \"eos_token_id\": " << eos << "}";
    const Outcome outcome = train({"--training.steps=1"});
    std::ofstream(temp_.path() / "config.json") << text;
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    return outcome.output;
  };
  const std::string other = said("[3, 4]");
  EXPECT_THAT(other, testing::ContainsRegex(
                         "End of text: the tokenizer's [0-9]+ .<.end_of_text.>. is used; "
                         "config.json says 3, 4"));
  EXPECT_EQ(other.find("End of text"), other.rfind("End of text"));
  std::smatch id;
  ASSERT_TRUE(std::regex_search(other, id, std::regex("tokenizer's ([0-9]+)")));
  EXPECT_THAT(said(("[3, " + id[1].str() + "]").c_str()), Not(HasSubstr("End of text")));
}

// W21: the weights of a folder whose config.json is another model's.
TEST_F(Start, WeightsOfAnotherModelAreRefusedByNativeAndPublishedModels) {
  const fs::path other = temp_.path() / "other";
  fs::create_directories(other);
  std::string text = read_file(temp_.path() / "config.json");
  text.replace(text.find("10000.0"), 7, "50000.0");
  std::ofstream(other / "config.json") << text;
  for (const Words& module :
       {Words{"--module=llama3", "--config=llama3_from_config"},
        Words{"--module=hf", "--config=transformers_modeling_backend_full"}}) {
    const Outcome outcome =
        train(support::join(module, {"--checkpoint.enable", "--checkpoint.initial_load_in_hf",
                                     "--checkpoint.initial_load_path=" + other.string()}));
    EXPECT_EQ(outcome.code, 2) << outcome.output;
    EXPECT_THAT(outcome.output,
                HasSubstr("rope_theta: the model has 10000, config.json has 50000"));
    EXPECT_THAT(outcome.output, Not(HasSubstr("rhea version")));
  }
}

}  // namespace
}  // namespace rhea
