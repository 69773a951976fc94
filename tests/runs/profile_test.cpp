// The profile of a real run: its tables account for the whole step.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "rhea/base/json.h"
#include "tests/runs/run_test.h"

namespace rhea {
namespace {

class Profile : public RunTest {
 protected:
  // Every step is a cycle of its own. Ops large enough that their time, and not the log line, is
  // what a step consists of.
  std::vector<nlohmann::json> profiles(int steps, const Words& more) {
    std::ofstream(temp_.path() / "config.json") << R"({"architectures": ["LlamaForCausalLM"],
 "model_type": "llama", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2,
 "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 2048,
 "hidden_act": "silu", "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "attention_bias": false,
 "mlp_bias": false, "max_position_embeddings": 4096, "tie_word_embeddings": false})";
    const Outcome outcome =
        train(support::join({fmt::format("--training.steps={}", steps), "--training.seq_len=256",
                             "--training.local_batch_size=4", "--profiler.enable_profiling",
                             "--profiler.profile_freq=1", "--profiler.profiler_warmup=0",
                             "--profiler.profiler_active=1"},
                            more));
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_THAT(outcome.output, testing::ContainsRegex("% in kernels, [0-9.]+ % explained"));
    std::vector<nlohmann::json> found;
    for (int step = 1; step <= steps; ++step)
      found.push_back(parse_json(read_file(
          dump() / fmt::format("profiling/traces/iteration_{}/rank0_profile.json", step))));
    return found;
  }

  static double seconds(const nlohmann::json& rows) {
    double sum = 0;
    for (const auto& row : rows) sum += row.at("seconds").get<double>();
    return sum;
  }
  // Of the row of that name; fails where there is none.
  static double seconds(const nlohmann::json& rows, std::string_view name) {
    for (const auto& row : rows)
      if (row.at("name") == name) return row.at("seconds");
    ADD_FAILURE() << "there is no row '" << name << "' in\n" << rows.dump(1);
    return 0;
  }
};

TEST_F(Profile, KernelsAndWhatHasANameAreTheStep) {
  double kernels = 0, explained = 0;
  for (const auto& json : profiles(8, {})) {
    const double step = json.at("step_seconds"), in_kernels = json.at("kernel_seconds");
    for (const char* table : {"directions", "ops", "modules", "layers", "fqns"})
      EXPECT_NEAR(seconds(json.at(table)), in_kernels, 1e-6 * step) << table;
    double outside = 0;
    for (const auto& [name, time] : json.at("outside_kernels").items())
      outside += time.get<double>();
    EXPECT_NEAR(in_kernels + outside, step, 1e-6 * step) << "what is not explained is 'rest'";
    EXPECT_TRUE(json.at("outside_kernels").contains("rest"));
    kernels = std::max(kernels, in_kernels / step);
    explained = std::max(explained, json.at("explained").get<double>());
  }
  // Shares within one step, of the step in which other programs of the machine came least between.
  EXPECT_GE(kernels, 0.9);
  EXPECT_GE(explained, 0.97);
}

TEST_F(Profile, TellsDirectionsApart) {
  const auto json = profiles(2, {"--activation_checkpoint.mode=full"}).back();
  for (const char* name : {"forward", "recompute", "input gradient", "weight gradient",
                           "input and weight gradient", "loss and gradients", "norm", "update"})
    EXPECT_GT(seconds(json.at("directions"), name), 0);
  for (const char* direction : {"forward", "recompute", "input gradient", "weight gradient"})
    EXPECT_GT(seconds(json.at("fqns"), fmt::format("layers.1.feed_forward.w1, {}", direction)), 0);
  for (const char* layer : {"layers.0", "layers.1"})
    EXPECT_GT(seconds(json.at("layers"), layer), 0);
}

// Gradients of further microbatches are added where the first ones lie.
TEST_F(Profile, TellsDirectionsApartInFurtherMicrobatches) {
  const auto json = profiles(2, {"--training.global_batch_size=8"}).back();
  for (const auto& row : json.at("ops"))
    EXPECT_FALSE(row.at("name").get<std::string>().ends_with(", accumulate")) << row;
  EXPECT_GT(seconds(json.at("directions"), "weight gradient"), 0);
}

}  // namespace
}  // namespace rhea
