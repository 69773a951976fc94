// The same bits whatever does not belong to the arithmetic: threads, interpreter, recomputation,
// an interruption.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/process.h"
#include "tests/support/run.h"
#include "tests/support/temp_folder.h"

#include "rhea/base/cpu_features.h"
#include "rhea/base/cpu_tiles.h"
#include "rhea/base/json.h"

namespace rhea {
namespace {

namespace fs = std::filesystem;
using support::difference;
using support::RunResult;
using support::TempFolder;
using support::Words;

class Determinism : public testing::Test {
 protected:
  // One run of the small model, in a dump folder of its own.
  RunResult run(const Words& words) {
    return support::train(support::join(small_, words),
                          temp_.path() / fmt::format("run_{}", num_runs_++));
  }
  void use_dtype(const char* dtype) {
    small_ = support::with_option(small_, std::string("--training.mixed_precision_param=") + dtype);
  }

  void expect_same(const RunResult& a, const RunResult& b, const std::string& what) {
    EXPECT_EQ(difference(a.tensors, b.tensors), "") << what;
    EXPECT_EQ(a.rows, b.rows) << what;
    EXPECT_EQ(a.rows.size(), 12U);
  }

  TempFolder temp_;
  Words small_ = support::small_run(temp_.path());
  int num_runs_ = 0;
};

// 128: a large machine's count, by oversubscription; most of the grids have fewer items than that.
TEST_F(Determinism, AnyNumberOfThreads) {
  for (const char* dtype : {"float32", "bfloat16"}) {
    const Words words =
        support::with_option(small_, std::string("--training.mixed_precision_param=") + dtype);
    const auto with = [&](int threads) {
      return support::train(
          support::join(words, {fmt::format("--executor.num_threads={}", threads)}),
          temp_.path() / fmt::format("{}_{}", dtype, threads));
    };
    const RunResult one = with(1);
    for (const int threads : {2, 5, 128})
      expect_same(one, with(threads), fmt::format("{} with {} threads", dtype, threads));
  }
}

// The same with products in bf16, whose kernels are others.
class DeterminismOfEachType : public Determinism, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override { use_dtype(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Types, DeterminismOfEachType, testing::Values("float32", "bfloat16"),
                         [](const auto& test) { return std::string(test.param); });

// Experts: rows are shared out by data, sums over a token's experts and over an expert's rows are
// not.
class DeterminismOfExperts : public Determinism, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    std::ofstream(temp_.path() / "config.json") << R"({"architectures": ["DeepseekV3ForCausalLM"],
 "model_type": "deepseek_v3", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
 "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 2048, "q_lora_rank": 32,
 "kv_lora_rank": 32, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8,
 "first_k_dense_replace": 1, "n_routed_experts": 16, "num_experts_per_tok": 4, "n_group": 4,
 "topk_group": 2, "n_shared_experts": 1, "moe_intermediate_size": 64,
 "num_nextn_predict_layers": 0})";
    small_[0] = "--module=hf";
    small_[1] = "--config=transformers_modeling_backend_full";
    small_ =
        support::with_option(small_, std::string("--training.mixed_precision_param=") + GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(Types, DeterminismOfExperts, testing::Values("float32", "bfloat16"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(DeterminismOfExperts, ThreadsAndRecomputationChangeNoBit) {
  const RunResult one = run({"--executor.num_threads=1", "--activation_checkpoint.mode=none"});
  for (const char* threads : {"2", "5"})
    expect_same(one,
                run({std::string("--executor.num_threads=") + threads,
                     "--activation_checkpoint.mode=none"}),
                threads);
  expect_same(one, run({"--activation_checkpoint.mode=full"}), "computed again");
  expect_same(one, run({"--activation_checkpoint.mode=none", "--compile.no_enable"}),
              "interpreted");
}

TEST_F(Determinism, AnotherSeedIsAnotherRun) {
  const RunResult a = run({});
  const RunResult b =
      support::train(support::with_option(small_, "--debug.seed=8"), temp_.path() / "other");
  EXPECT_NE(difference(a.tensors, b.tensors), "");
}

TEST_P(DeterminismOfEachType, InterpreterComputesTheSameBits) {
  expect_same(run({}), run({"--compile.no_enable"}), "interpreted");
}

TEST_P(DeterminismOfEachType, RecomputationComputesTheSameBits) {
  const RunResult none = run({"--activation_checkpoint.mode=none"});
  for (const char* mode : {"full", "selective"})
    expect_same(none, run({std::string("--activation_checkpoint.mode=") + mode}), mode);
  for (const char* budget : {"0", "0.5", "1"})
    expect_same(none,
                run({"--activation_checkpoint.mode=memory_budget",
                     std::string("--activation_checkpoint.memory_budget=") + budget}),
                budget);
}

TEST_F(Determinism, ProfilingComputesTheSameBits) {
  const RunResult plain = run({});
  const fs::path dump = temp_.path() / fmt::format("run_{}", num_runs_);
  expect_same(plain,
              run({"--profiler.enable_profiling", "--profiler.profile_freq=4",
                   "--profiler.enable_memory_snapshot", "--profiler.memory_snapshot_freq=6"}),
              "profiled");
  for (const int step : {4, 8, 12}) {
    const fs::path folder = dump / fmt::format("profiling/traces/iteration_{}", step);
    EXPECT_TRUE(fs::exists(folder / "rank0_trace.json.gz")) << folder;
    EXPECT_TRUE(fs::exists(folder / "rank0_profile.json")) << folder;
  }
  for (const int step : {6, 12}) {
    const fs::path file =
        dump /
        fmt::format("profiling/memory_snapshot/step_{:012d}/000000_step_{}.json", step, step);
    EXPECT_TRUE(fs::exists(file)) << file;
  }
}

// In shuffled order, so that the position of the data matters; step 5 lies inside a document.
TEST_P(DeterminismOfEachType, ResumeMidRunIsAsIfNeverStopped) {
  for (const char* mode : {"disabled", "async"}) {
    const fs::path dump = temp_.path() / mode;
    const Words words = support::join(
        small_, {"--dataloader.shuffle", "--checkpoint.enable", "--checkpoint.interval=5",
                 "--checkpoint.keep_latest_k=0", "--checkpoint.no_last_save_model_only",
                 std::string("--checkpoint.async_mode=") + mode});
    const RunResult whole = support::train(words, dump);
    ASSERT_EQ(whole.rows.size(), 12U);
    for (const int from : {10, 5}) {
      // What a run that ended right after step `from` would have left.
      for (const auto& entry : fs::directory_iterator(dump / "checkpoint")) {
        const std::string name = entry.path().filename();
        if (name.starts_with("step-") && std::stoi(name.substr(5)) > from)
          fs::remove_all(entry.path());
      }
      fs::remove_all(dump / "metrics");
      const RunResult resumed = support::train(words, dump);
      EXPECT_EQ(difference(whole.tensors, resumed.tensors), "") << mode << " from " << from;
      const std::vector<support::StepRow> rest(whole.rows.begin() + from, whole.rows.end());
      EXPECT_EQ(resumed.rows, rest) << mode << " from " << from;
    }
  }
}

// Without learning, the loss of the same text is the same in training and validation.
TEST_P(DeterminismOfEachType, ValidationLossIsThatOfTheText) {
  const fs::path dump = temp_.path() / "validated";
  const std::string path = (temp_.path() / "text.jsonl").string();
  const RunResult result = support::train(
      support::join(small_, {"--optimizer.param_groups.0.optimizer_kwargs.lr=0",
                             "--optimizer.param_groups.0.optimizer_kwargs.weight_decay=0",
                             "--validator.enable", "--validator.freq=12", "--validator.steps=12",
                             "--validator.dataloader.dataset=jsonl",
                             "--validator.dataloader.dataset_path=" + path}),
      dump);
  double sum = 0;
  for (const auto& row : result.rows) sum += row.loss;
  std::ifstream lines(dump / "metrics" / "rank_0.jsonl");
  std::vector<double> losses;
  for (std::string line; std::getline(lines, line);) {
    const auto json = parse_json(line);
    if (json.contains("validation_metrics/loss")) losses.push_back(json["validation_metrics/loss"]);
  }
  ASSERT_FALSE(losses.empty());
  for (const double loss : losses)
    EXPECT_NEAR(loss, sum / static_cast<double>(result.rows.size()), 1e-5);
}

TEST_F(Determinism, AccumulationOnlyChangesRounding) {
  const Words words = support::join(small_, {"--training.global_batch_size=4"});
  std::vector<RunResult> runs;
  for (const int rows : {4, 2, 1})
    runs.push_back(support::train(
        support::with_option(words, fmt::format("--training.local_batch_size={}", rows)),
        temp_.path() / fmt::format("rows_{}", rows)));
  for (size_t i = 1; i < runs.size(); ++i) {
    ASSERT_EQ(runs[i].rows.size(), runs[0].rows.size());
    for (size_t step = 0; step < runs[0].rows.size(); ++step) {
      EXPECT_NEAR(runs[i].rows[step].loss, runs[0].rows[step].loss, 1e-5) << "step " << step + 1;
      EXPECT_NEAR(runs[i].rows[step].grad_norm / runs[0].rows[step].grad_norm, 1, 1e-4);
      EXPECT_EQ(runs[i].rows[step].tokens_seen, runs[0].rows[step].tokens_seen);
    }
  }
}

// Each instruction set has its own bits, whatever the number of threads, and stays near the others;
// the variable is read once a process. The last word chooses products as for matrix tiles.
TEST_P(DeterminismOfEachType, EveryInstructionSetHasItsBitsAndStaysNear) {
  const auto run_with = [&](std::string_view isa, int threads) {
    const fs::path dump = temp_.path() / fmt::format("{}_{}", isa, threads);
    support::Process process(
        support::join({"train", "--dump_folder=" + dump.string(),
                       fmt::format("--executor.num_threads={}", threads), "--checkpoint.enable",
                       "--checkpoint.no_last_save_model_only"},
                      small_),
        dump.string() + ".log", {.environment = {{"RHEA_ISA", std::string(isa)}}});
    EXPECT_EQ(process.wait(), 0) << process.output();
    return RunResult{.rows = support::read_rows(dump),
                     .tensors = support::read_step(dump / "checkpoint/step-12")};
  };
  std::vector<std::string_view> words;
  for (const Isa isa : {Isa::plain, Isa::avx2, Isa::avx512, Isa::avx512_bf16})
    if (isa <= detected_isa()) words.push_back(isa_name(isa));
  words.push_back(kTilesWord);
  // Sums that differ in their last bit become neighbours in bf16 here and there.
  const bool bf16 = GetParam() == std::string_view("bfloat16");
  const double loss = bf16 ? 5e-4 : 1e-5, norm = bf16 ? 5e-4 : 1e-4;
  RunResult plain;
  for (const std::string_view word : words) {
    const RunResult one = run_with(word, 1);
    expect_same(one, run_with(word, 5), fmt::format("{} with 5 threads", word));
    if (plain.rows.empty()) plain = one;
    ASSERT_EQ(one.rows.size(), plain.rows.size());
    for (size_t i = 0; i < plain.rows.size(); ++i) {
      EXPECT_NEAR(one.rows[i].loss, plain.rows[i].loss, loss) << word << " step " << i + 1;
      EXPECT_NEAR(one.rows[i].grad_norm / plain.rows[i].grad_norm, 1, norm)
          << word << " step " << i + 1;
    }
  }
}

}  // namespace
}  // namespace rhea
