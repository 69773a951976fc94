// Training curves of torchtitan and of PyTorch, step by step, through the trainer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/safetensors/reader.h"
#include "tests/support/run.h"
#include "tests/support/temp_folder.h"

namespace rhea {
namespace {

namespace fs = std::filesystem;
using support::RunResult;
using support::TempFolder;
using support::Words;

const fs::path kGolden = RHEA_SOURCE_DIR "/tests/data/golden";

nlohmann::json read_json(const fs::path& path) { return parse_json(read_file(path)); }

Words module_words(const std::string& family) {
  if (family == "hf") return {"--module=hf", "--config=transformers_modeling_backend_full"};
  return {"--module=" + family, "--config=" + family + "_from_config"};
}

// From the weights and tokens of `folder`, with what all runs of that folder share.
Words run_words(const std::string& family, const fs::path& folder, const fs::path& tokens,
                const std::string& compute_dtype) {
  return support::join(
      module_words(family),
      {"--hf_assets_path=" + folder.string(), "--dataloader.dataset=tokens",
       "--dataloader.dataset_path=" + tokens.string(),
       "--training.mixed_precision_param=" + compute_dtype, "--lr_scheduler.warmup_steps=5",
       "--checkpoint.enable", "--checkpoint.initial_load_in_hf", "--checkpoint.load_only",
       "--metrics.log_freq=1", "--metrics.peak_flops=1e12"});
}

struct TitanRun {
  const char* name;    // folder of golden/titan
  const char* family;  // hf: structure from config.json
  const char* dtype = "float32";
  int rows = 4;  // of one microbatch; 4 a step
  bool shared = false;
};

void PrintTo(const TitanRun& run, std::ostream* out) {
  *out << run.name << " " << run.family << " " << run.dtype << " rows " << run.rows;
}

class Titan : public testing::TestWithParam<TitanRun> {
 protected:
  RunResult train(const fs::path& folder) {
    const auto& run = GetParam();
    // The recipe of every run, in the README of the golden data; the debug model has its own.
    const bool debug = std::string(run.name) == "llama3_debug";
    return support::train(
        support::join(run_words(run.family, folder, folder / "tokens.safetensors", run.dtype),
                      {fmt::format("--training.local_batch_size={}", run.rows),
                       "--training.global_batch_size=4", "--training.seq_len=256",
                       debug ? "--training.steps=20" : "--training.steps=30",
                       std::string("--optimizer.param_groups.0.optimizer_kwargs.lr=") +
                           (debug ? "8e-4" : "2e-3"),
                       "--lr_scheduler.decay_ratio=0.5", "--lr_scheduler.decay_type=cosine",
                       "--lr_scheduler.min_lr_factor=0.1"}),
        temp_.path());
  }
  TempFolder temp_;
};

// PyTorch's own f32 sum, which some runs have only, is low by up to 2e-4.
double norm_of(const nlohmann::json& step) {
  return step.contains("grad_norm_f64") ? step.at("grad_norm_f64") : step.at("grad_norm");
}

TEST_P(Titan, LossNormAndRateOfEveryStep) {
  const auto& param = GetParam();
  const fs::path folder = param.shared ? fs::path(RHEA_SHARED_DIR "/data/golden/titan") / param.name
                                       : kGolden / "titan" / param.name;
  if (!fs::exists(folder / "model.safetensors"))
    GTEST_SKIP() << folder << " is absent; this curve is read from the shared golden data.";
  const auto runs = read_json(folder / "curve.json").at("runs");
  const bool f32 = std::string(param.dtype) == "float32";
  // Two microbatches a step have a curve of their own.
  const auto& expected = runs.at(param.rows == 2 ? "accum2" : f32 ? "f32" : "bf16").at("steps");
  const auto& f32_steps = runs.at("f32").at("steps");
  const RunResult run = train(folder);
  ASSERT_EQ(run.rows.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto& step = expected[i];
    const auto& row = run.rows[i];
    const double norm = norm_of(step);
    EXPECT_EQ(row.step, step.at("step").get<int64_t>());
    EXPECT_NEAR(row.loss, step.at("loss").get<double>(), f32 ? 2e-5 : 6e-3) << "step " << i + 1;
    EXPECT_NEAR(row.lr, step.at("lr").get<double>(), 1e-12) << "step " << i + 1;
    EXPECT_EQ(row.tokens_seen, step.at("n_tokens_seen").get<int64_t>());
    // Where torchtitan's own bf16 norm is far from its f32 norm (a step of a sharp loss surface),
    // no bf16 run can be nearer.
    const double spread = std::abs(norm - norm_of(f32_steps[i])) / norm;
    EXPECT_NEAR(row.grad_norm / norm, 1, f32 ? 2e-4 : 0.02 + 1.5 * spread) << "step " << i + 1;
  }
}

const auto kNameOf = [](const auto& test) {
  const TitanRun& run = test.param;
  return fmt::format("{}_{}_{}_{}", run.name, run.family, run.dtype, run.rows);
};

INSTANTIATE_TEST_SUITE_P(Curves, Titan,
                         testing::Values(TitanRun{"llama3_small", "llama3"},
                                         TitanRun{"llama3_small", "hf"},
                                         TitanRun{"llama3_small", "llama3", "float32", 2},
                                         TitanRun{"llama3_small", "llama3", "bfloat16"},
                                         TitanRun{"qwen3_small", "qwen3"},
                                         TitanRun{"qwen3_small", "hf"},
                                         TitanRun{"qwen3_small", "hf", "float32", 2},
                                         TitanRun{"qwen3_small", "qwen3", "bfloat16"},
                                         TitanRun{"qwen3_small", "hf", "bfloat16"},
                                         TitanRun{"llama3_debug", "llama3", "float32", 4, true},
                                         TitanRun{"llama3_debug", "hf", "float32", 4, true}),
                         kNameOf);

// 60 steps on real text against PyTorch in float64.
class TrainTiny : public testing::Test {
 protected:
  // [60, 4, 129] windows: inputs are the first 128 columns, labels the last 128.
  void SetUp() override {
    const safetensors::File file(folder_ / "tokens.safetensors");
    const auto& tensor = file.at("tokens");
    const auto windows = safetensors::read_vector<int32_t>(tensor);
    const int64_t width = tensor.shape[2];
    std::vector<int32_t> input, labels;
    for (size_t i = 0; i < windows.size(); ++i) {
      const int64_t column = static_cast<int64_t>(i) % width;
      if (column != width - 1) input.push_back(windows[i]);
      if (column != 0) labels.push_back(windows[i]);
    }
    support::write_tokens(tokens_, {tensor.shape[0], tensor.shape[1], width - 1}, input, labels);
  }

  void expect_curve(const std::string& family, const std::string& dtype,
                    const std::string& tolerance_of) {
    const auto json = read_json(folder_ / "golden.json");
    const auto& tolerance = json.at("tolerance").at(tolerance_of);
    const safetensors::File golden(folder_ / "golden.safetensors");
    const auto losses = safetensors::read_vector<double>(golden.at("losses_float64"));
    const auto norms = safetensors::read_vector<double>(golden.at("grad_norms_float64"));
    const auto rates = safetensors::read_vector<double>(golden.at("lr"));
    const RunResult run =
        support::train(support::join(run_words(family, folder_, tokens_, dtype),
                                     {"--training.local_batch_size=4", "--training.seq_len=128",
                                      "--training.steps=60", "--lr_scheduler.decay_ratio=None",
                                      "--optimizer.param_groups.0.optimizer_kwargs.lr=8e-4"}),
                       temp_.path() / "run");
    ASSERT_EQ(run.rows.size(), losses.size());
    for (size_t i = 0; i < losses.size(); ++i) {
      EXPECT_NEAR(run.rows[i].loss, losses[i], tolerance.at("loss_abs").get<double>())
          << "step " << i + 1;
      EXPECT_NEAR(run.rows[i].grad_norm / norms[i], 1, tolerance.at("grad_norm_rel").get<double>())
          << "step " << i + 1;
      EXPECT_NEAR(run.rows[i].lr, rates[i], 1e-12) << "step " << i + 1;
    }
    if (const auto mean_tolerance = tolerance.find("loss_abs_mean_of_last_10");
        mean_tolerance != tolerance.end()) {
      double difference = 0;
      for (size_t i = losses.size() - 10; i < losses.size(); ++i)
        difference += (run.rows[i].loss - losses[i]) / 10;
      EXPECT_LE(std::abs(difference), mean_tolerance->get<double>())
          << "mean of the last 10 losses";
    }
    if (family != "hf" || dtype != "float32") return;
    for (const auto& name : json.at("final_parameters")) {
      const auto key = name.get<std::string>();
      const auto expected = safetensors::read_vector<float>(golden.at("final." + key));
      const auto& bytes = run.tensors.at(key);
      ASSERT_EQ(bytes.size(), expected.size() * sizeof(float)) << key;
      const auto* actual = reinterpret_cast<const float*>(bytes.data());
      double worst = 0;
      for (size_t i = 0; i < expected.size(); ++i)
        worst = std::max(worst, std::abs(static_cast<double>(actual[i] - expected[i])));
      EXPECT_LE(worst, tolerance.at("final_abs").get<double>()) << key;
    }
  }

  TempFolder temp_;
  const fs::path folder_ = kGolden / "train_tiny";
  const fs::path tokens_ = temp_.path() / "tokens.safetensors";
};

TEST_F(TrainTiny, Float32) { expect_curve("llama3", "float32", "float32"); }
TEST_F(TrainTiny, Float32OfThePublishedModel) { expect_curve("hf", "float32", "float32"); }
TEST_F(TrainTiny, Bfloat16) { expect_curve("llama3", "bfloat16", "bf16_params"); }

}  // namespace
}  // namespace rhea
