// LoRA against PEFT: updates of adapters from one start, the folder that PEFT reads, merged
// weights; and against itself: nothing changes at the start, a resumed run keeps every bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "rhea/base/json.h"
#include "rhea/base/log.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/safetensors/reader.h"
#include "rhea/convert.h"
#include "rhea/inspect.h"
#include "rhea/model_files.h"
#include "rhea/published_model.h"
#include "rhea/score.h"
#include "tests/support/error_of.h"
#include "tests/support/run.h"
#include "tests/support/temp_folder.h"

namespace rhea {
namespace {

namespace fs = std::filesystem;
using safetensors::File;
using support::Words;
using testing::HasSubstr;

const fs::path kGolden = RHEA_SOURCE_DIR "/tests/data/golden";

std::vector<float> floats(const safetensors::TensorView& tensor) {
  return safetensors::read_vector<float>(tensor);
}

void expect_near(const std::vector<float>& found, const std::vector<float>& expected,
                 double tolerance, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double worst = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double d = std::abs(static_cast<double>(found[i]) - static_cast<double>(expected[i]));
    if (!(d <= worst)) worst = d;  // also a NaN
  }
  EXPECT_LE(worst, tolerance) << what;
}

// The working folder while it lives.
class WorkingFolder {
 public:
  explicit WorkingFolder(const fs::path& folder) : before_(fs::current_path()) {
    fs::current_path(folder);
  }
  ~WorkingFolder() { fs::current_path(before_); }
  WorkingFolder(const WorkingFolder&) = delete;
  WorkingFolder& operator=(const WorkingFolder&) = delete;

 private:
  fs::path before_;
};

class Lora : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    log::set_level(log::Level::error);
    const auto ids = safetensors::read_vector<int64_t>(batch_.at("input_ids"));
    const auto labels = safetensors::read_vector<int64_t>(batch_.at("labels"));
    const auto& shape = batch_.at("input_ids").shape;
    support::write_tokens(temp_.path() / "tokens.safetensors", {1, shape[0], shape[1]},
                          std::vector<int32_t>(ids.begin(), ids.end()),
                          std::vector<int32_t>(labels.begin(), labels.end()));
  }

  // A run of the golden model on its batch, constant rate, no clipping.
  Words words(const std::string& config, const Words& more) const {
    const auto& shape = batch_.at("input_ids").shape;
    return support::join(
        {"--module=hf", "--config=transformers_modeling_backend_" + config,
         "--hf_assets_path=" + model_.string(), "--dataloader.dataset=tokens",
         "--dataloader.dataset_path=" + (temp_.path() / "tokens.safetensors").string(),
         fmt::format("--training.local_batch_size={}", shape[0]),
         fmt::format("--training.seq_len={}", shape[1]), "--training.steps=6",
         "--training.max_norm=1e30", "--training.mixed_precision_param=float32",
         "--optimizer.param_groups.0.optimizer_kwargs.lr=1e-2", "--lr_scheduler.warmup_steps=0",
         "--lr_scheduler.min_lr_factor=1", "--debug.seed=5", "--checkpoint.enable",
         "--checkpoint.initial_load_in_hf", "--metrics.log_freq=1", "--metrics.peak_flops=1e12"},
        more);
  }
  fs::path dump(const char* name) const { return temp_.path() / name; }
  static nlohmann::json base_of(const fs::path& adapters) {
    return parse_json(read_file(adapters / "adapter_config.json")).at("base_model_name_or_path");
  }

  const support::TempFolder temp_{"lora"};
  const fs::path model_ = kGolden / "models" / GetParam();
  const fs::path adapters_ = kGolden / "lora" / GetParam();
  const File batch_{model_ / "golden.safetensors"};
};

TEST_P(Lora, SixUpdatesOfPeftsAdaptersAndTheFolderThatItReads) {
  const File golden(adapters_ / "golden.safetensors");
  const auto from_adapters =
      words("lora", {"--checkpoint.initial_load_path=" + adapters_.string()});
  const auto run = support::train(from_adapters, dump("peft"));
  const auto losses = safetensors::read_vector<double>(golden.at("losses"));
  const auto norms = safetensors::read_vector<double>(golden.at("grad_norms"));
  ASSERT_EQ(run.rows.size(), losses.size());
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(run.rows[i].loss, losses[i], 2e-5) << "update " << i + 1;
    EXPECT_NEAR(run.rows[i].grad_norm / norms[i], 1, 2e-5) << "update " << i + 1;
  }

  const fs::path exported = dump("peft") / "checkpoint/export/step-6";
  const File written(exported / "adapter_model.safetensors");
  const File start(adapters_ / "adapter_model.safetensors");
  std::set<std::string> names, expected_names;
  for (const auto& tensor : written.tensors()) names.insert(tensor.name);
  for (const auto& tensor : start.tensors()) expected_names.insert(tensor.name);
  EXPECT_EQ(names, expected_names);
  for (const auto& tensor : written.tensors()) {
    const auto& expected = golden.at("final." + tensor.name);
    EXPECT_EQ(tensor.shape, expected.shape) << tensor.name;
    expect_near(floats(tensor), floats(expected), 5e-5, tensor.name);
  }
  const auto config = parse_json(read_file(exported / "adapter_config.json"));
  const auto peft = parse_json(read_file(adapters_ / "adapter_config.json"));
  for (const char* field :
       {"peft_type", "task_type", "r", "lora_alpha", "lora_dropout", "bias", "fan_in_fan_out",
        "use_rslora", "use_dora", "rank_pattern", "alpha_pattern"})
    EXPECT_EQ(config.at(field), peft.at(field)) << field;
  EXPECT_EQ(base_of(exported), model_.string());
  EXPECT_FALSE(fs::exists(exported / "model.safetensors"));

  // What was exported is where another run goes on.
  const auto again = support::train(
      support::with_option(words("lora", {"--checkpoint.initial_load_path=" + exported.string()}),
                           "--training.steps=1"),
      dump("again"));
  EXPECT_LT(again.rows.front().loss, run.rows.back().loss);
}

TEST_P(Lora, K16MergedExportIsTheTrainedFunction) {
  const File golden(adapters_ / "golden.safetensors");
  support::train(words("lora", {"--checkpoint.initial_load_path=" + adapters_.string(),
                                "--checkpoint.merge_adapters"}),
                 dump("merged"));
  const fs::path exported = dump("merged") / "checkpoint/export/step-6";
  const safetensors::Weights weights(exported), base(model_);
  EXPECT_EQ(weights.names(), base.names());
  for (const auto& tensor : golden.tensors()) {
    if (!tensor.name.starts_with("merged.")) continue;
    const std::string name = tensor.name.substr(7);
    expect_near(floats(weights.at(name)), floats(tensor), 5e-5, name);
    EXPECT_NE(floats(weights.at(name)), floats(base.at(name))) << name;
  }
  // The seventh loss of the run with adapters is the first of a plain run of the merged weights.
  const auto seven = support::train(
      support::with_option(words("lora", {"--checkpoint.initial_load_path=" + adapters_.string()}),
                           "--training.steps=7"),
      dump("seven"));
  const auto plain = support::train(
      support::with_option(words("full", {"--checkpoint.initial_load_path=" + exported.string()}),
                           "--training.steps=1"),
      dump("plain"));
  EXPECT_NEAR(plain.rows[0].loss, seven.rows[6].loss, 5e-6);
}

TEST_P(Lora, TheFirstLossIsTheBasesAndOnlyAdaptersMove) {
  const auto base =
      support::train(support::with_option(words("full", {}), "--training.steps=1"), dump("base"));
  const auto run = support::train(words("lora", {}), dump("lora"));
  EXPECT_EQ(run.rows[0].loss, base.rows[0].loss);
  EXPECT_LT(run.rows[5].loss, run.rows[0].loss);
  const safetensors::Weights weights(model_);
  int64_t frozen = 0, adapters = 0;
  for (const auto& [name, bytes] : run.tensors) {
    if (name.starts_with("optimizer.")) {
      EXPECT_THAT(name, HasSubstr(".lora_"));
    } else if (const auto* view = weights.find(name)) {
      ++frozen;
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), view->bytes.begin(), view->bytes.end()))
          << name;
    } else {
      ++adapters;
      EXPECT_THAT(name, HasSubstr(".lora_"));
    }
  }
  EXPECT_EQ(frozen, static_cast<int64_t>(weights.names().size()));
  EXPECT_GT(adapters, 0);
}

TEST_P(Lora, AResumedRunKeepsEveryBit) {
  const auto whole = support::train(words("lora", {}), dump("whole"));
  support::train(support::with_option(words("lora", {}), "--training.steps=3"), dump("parts"));
  const auto rest = support::train(words("lora", {}), dump("parts"));
  EXPECT_EQ(support::difference(rest.tensors, whole.tensors), "");
  ASSERT_EQ(whole.rows.size(), 6U);
  EXPECT_EQ(rest.rows.back(), whole.rows.back());
}

TEST_P(Lora, OtherCommandsReadTheNativeCheckpoint) {
  support::train(words("lora", {"--checkpoint.initial_load_path=" + adapters_.string()}),
                 dump("run"));
  const fs::path native = dump("run") / "checkpoint/step-6";
  convert({.from = native, .to = dump("merged")});
  convert({.from = native, .to = dump("alone"), .only_adapters = true});
  const File alone(dump("alone") / "adapter_model.safetensors");
  EXPECT_EQ(base_of(dump("alone")), model_.string());
  const File exported(dump("run") / "checkpoint/export/step-6/adapter_model.safetensors");
  ASSERT_EQ(alone.tensors().size(), exported.tensors().size());
  for (const auto& tensor : exported.tensors())
    EXPECT_EQ(floats(alone.at(tensor.name)), floats(tensor)) << tensor.name;
  const File golden(adapters_ / "golden.safetensors");
  const safetensors::Weights merged(dump("merged"));
  for (const auto& tensor : golden.tensors())
    if (tensor.name.starts_with("merged."))
      expect_near(floats(merged.at(tensor.name.substr(7))), floats(tensor), 5e-5, tensor.name);

  ThreadPool pool(2);
  const auto logits = [&](const fs::path& model, const char* output) {
    score({.model = model, .input = model_ / "golden.safetensors", .output = dump(output)}, pool);
    return floats(File(dump(output)).at("logits"));
  };
  const auto of_native = logits(native, "native.safetensors");
  EXPECT_EQ(of_native, logits(dump("merged"), "merged.safetensors"));
  EXPECT_NE(of_native, logits(model_, "base.safetensors"));

  // In bf16, too, the sum is rounded, not its parts.
  const PublishedModel wide(native, &pool), narrow(native, &pool, DType::bf16);
  ASSERT_EQ(narrow.tensors().size(), wide.tensors().size());
  for (size_t i = 0; i < wide.tensors().size(); ++i) {
    const auto &from = wide.tensors()[i], &to = narrow.tensors()[i];
    ASSERT_EQ(to.name, from.name);
    ASSERT_EQ(to.shape, from.shape) << to.name;
    ASSERT_EQ(from.dtype, DType::f32) << to.name;
    ASSERT_EQ(to.dtype, DType::bf16) << to.name;
    const auto* sum = static_cast<const float*>(from.data);
    const auto* rounded = static_cast<const bf16*>(to.data);
    for (int64_t k = 0; k < from.num_elements(); ++k)
      ASSERT_EQ(rounded[k].bits, bf16(sum[k]).bits) << to.name << " " << k;
  }
}

// Paths of a run begin at its own folder, not at that of the command that reads its checkpoint. The
// adapters that it began with are no base model, also when their folder is gone, and a resumed run
// names the model that the first one took.
TEST_P(Lora, TheBaseModelIsTheSameFromEveryFolder) {
  fs::copy(model_, dump("base"));
  fs::copy(adapters_, dump("adapters"));
  fs::create_directory(dump("elsewhere"));
  std::ofstream(dump("base") / "generation_config.json") << R"({"temperature": 0.6})";
  const Words relative = support::with_option(
      words("lora", {"--checkpoint.initial_load_path=" + dump("adapters").string()}),
      "--hf_assets_path=base");
  const auto base_after = [&](int steps) {
    {
      const WorkingFolder at(temp_.path());
      support::train(support::with_option(relative, fmt::format("--training.steps={}", steps)),
                     dump("run"));
    }
    const WorkingFolder at(dump("elsewhere"));
    const fs::path checkpoint = dump("run") / fmt::format("checkpoint/step-{}", steps);
    EXPECT_EQ(base_of(dump("run") / fmt::format("checkpoint/export/step-{}", steps)),
              dump("base").string());
    EXPECT_EQ(find_model(checkpoint).assets, dump("base"));
    const fs::path alone = temp_.path() / fmt::format("alone_{}", steps);
    convert({.from = checkpoint, .to = alone, .only_adapters = true});
    return base_of(alone);
  };
  EXPECT_EQ(base_after(1), dump("base").string());
  // What the options of the second start name is not read: a checkpoint of the run is there.
  fs::remove(dump("adapters") / "adapter_config.json");
  fs::remove(dump("adapters") / "adapter_model.safetensors");
  EXPECT_EQ(base_after(2), dump("base").string());
  const WorkingFolder at(dump("elsewhere"));
  convert({.from = dump("run") / "checkpoint/step-2", .to = dump("merged")});
  EXPECT_EQ(read_file(dump("merged") / "generation_config.json"), R"({"temperature": 0.6})");
  convert({.from = dump("run") / "checkpoint/step-2",
           .to = dump("named"),
           .hf_assets_path = "../base",
           .only_adapters = true});
  EXPECT_EQ(base_of(dump("named")), dump("base").string());
}

// A folder of PEFT with a base model at hand is a model for every command, by one conversion.
TEST_P(Lora, APeftFolderIsMergedIntoItsBase) {
  support::train(words("lora", {"--checkpoint.initial_load_path=" + adapters_.string()}),
                 dump("run"));
  const fs::path exported = dump("run") / "checkpoint/export/step-6";
  convert({.from = exported, .to = dump("merged"), .hf_assets_path = model_});
  convert({.from = exported, .to = dump("named")});  // adapter_config.json names the folder
  convert({.from = dump("run") / "checkpoint/step-6", .to = dump("native")});
  const safetensors::Weights merged(dump("merged")), named(dump("named")), native(dump("native"));
  EXPECT_EQ(merged.names(), safetensors::Weights(model_).names());
  for (const std::string& name : merged.names()) {
    EXPECT_EQ(floats(merged.at(name)), floats(native.at(name))) << name;
    EXPECT_EQ(floats(named.at(name)), floats(native.at(name))) << name;
  }
  convert({.from = exported, .to = dump("again"), .format = ConvertOptions::Format::native});
  ThreadPool pool(2);
  score({.model = dump("again"), .input = model_ / "golden.safetensors", .output = dump("a.st")},
        pool);
  score({.model = dump("native"), .input = model_ / "golden.safetensors", .output = dump("b.st")},
        pool);
  EXPECT_EQ(floats(File(dump("a.st")).at("logits")), floats(File(dump("b.st")).at("logits")));
}

// Where the adapters are no model, every command says what they are and what to do.
TEST_P(Lora, APeftFolderAloneIsNoModel) {
  ThreadPool pool(2);
  const auto of_score = support::error_of([&] {
    score({.model = adapters_, .input = model_ / "golden.safetensors", .output = dump("x")}, pool);
  });
  EXPECT_THAT(of_score, HasSubstr("holds LoRA adapters and no model"));
  EXPECT_THAT(of_score, HasSubstr("`rhea convert --from " + adapters_.string()));
  std::ostringstream shown;
  EXPECT_TRUE(inspect({.path = adapters_}, shown)) << shown.str();
  EXPECT_THAT(shown.str(), HasSubstr("LoRA adapters as PEFT stores them"));
  EXPECT_THAT(shown.str(), HasSubstr("adapters: "));

  const fs::path changed = temp_.path() / "changed";
  fs::copy(adapters_, changed);
  const auto good = parse_json(read_file(adapters_ / "adapter_config.json"));
  const auto refusal = [&](const char* field, const nlohmann::json& value) {
    auto config = good;
    config[field] = value;
    std::ofstream(changed / "adapter_config.json") << config;
    const fs::path to = dump("refused");
    const auto message =
        support::error_of([&] { convert({.from = changed, .to = to, .hf_assets_path = model_}); });
    EXPECT_FALSE(fs::exists(to));
    return message;
  };
  EXPECT_THAT(refusal("use_dora", true), HasSubstr("use_dora is true"));
  EXPECT_THAT(refusal("rank_pattern", {{"layers.[01].q", 4}}), HasSubstr("a regular expression"));
  EXPECT_THAT(refusal("r", 3), HasSubstr("expected [3, in] and [out, 3]"));
  EXPECT_THAT(refusal("r", 0), HasSubstr("r is 0, expected a whole number"));
  EXPECT_THAT(refusal("fan_in_fan_out", !good.value("fan_in_fan_out", false)),
              HasSubstr("is for a weight ["));
  for (const auto& [text, said] : {std::pair<std::string, const char*>("", "is empty"),
                                   {"[1]", "expected a JSON object"},
                                   {"{\"r\": 8,", "not valid JSON"},
                                   {std::string(100000, '['), "nested more than"}}) {
    std::ofstream(changed / "adapter_config.json") << text;
    EXPECT_THAT(support::error_of(
                    [&] { convert({.from = changed, .to = dump("z"), .hf_assets_path = model_}); }),
                HasSubstr(said));
  }
  std::ofstream(changed / "adapter_config.json") << good;
  fs::remove(changed / "adapter_model.safetensors");
  std::ofstream(changed / "adapter_model.bin") << "pickle";
  EXPECT_THAT(
      support::error_of([&] { convert({.from = changed, .to = dump("y")}); }),
      HasSubstr("has adapter_config.json, but no adapter_model.safetensors; its adapter_model.bin "
                "is a Python program's state"));
}

// Ranks and alphas by module, and alpha / sqrt(rank): other words of PEFT for the same adapters.
TEST_P(Lora, PatternsAndRsloraScaleAsPeftSays) {
  const fs::path changed = temp_.path() / "changed";
  fs::copy(adapters_, changed);
  auto config = parse_json(read_file(adapters_ / "adapter_config.json"));
  const auto merge = [&](const fs::path& from, const char* to) {
    convert({.from = from, .to = dump(to), .hf_assets_path = model_});
    return dump(to);
  };
  const auto write = [&] { std::ofstream(changed / "adapter_config.json") << config; };
  const safetensors::Weights plain(merge(adapters_, "plain")), base(model_);
  const int64_t rank = config["r"];
  const std::string first = config["target_modules"][0];
  config["r"] = 1;
  for (const auto& end : config["target_modules"])
    config["rank_pattern"][end.get<std::string>()] = rank;
  config["alpha_pattern"][first] = 3 * config["lora_alpha"].get<double>();
  write();
  const safetensors::Weights patterns(merge(changed, "patterns"));
  config["alpha_pattern"] = nlohmann::json::object();
  config["use_rslora"] = true;
  write();
  const safetensors::Weights rslora(merge(changed, "rslora"));
  for (const std::string& name : plain.names()) {
    const auto from = floats(base.at(name)), once = floats(plain.at(name));
    const bool of_first = name.ends_with(first + ".weight");
    std::vector<float> by_pattern = once, by_root = once;
    for (size_t i = 0; i < from.size(); ++i) {
      const float delta = once[i] - from[i];
      if (of_first) by_pattern[i] = from[i] + 3 * delta;
      by_root[i] = from[i] + std::sqrt(static_cast<float>(rank)) * delta;
    }
    expect_near(floats(patterns.at(name)), by_pattern, 1e-6, name);
    expect_near(floats(rslora.at(name)), by_root, 1e-6, name);
  }
}

TEST_P(Lora, AdaptersNeedTheWeightsOfTheirBase) {
  const fs::path bare = temp_.path() / "bare";
  fs::create_directory(bare);
  fs::copy(model_ / "config.json", bare / "config.json");
  EXPECT_THAT(support::error_of([&] {
                support::train(
                    support::with_option(
                        words("lora", {"--checkpoint.initial_load_path=" + adapters_.string()}),
                        "--hf_assets_path=" + bare.string()),
                    dump("refused"));
              }),
              HasSubstr("holds adapters alone; the weights of their base model are read from "
                        "hf_assets_path"));
}

TEST_P(Lora, ABaseModelIsNotGivenAdapters) {
  EXPECT_THAT(support::error_of([&] {
                support::train(
                    words("full", {"--checkpoint.initial_load_path=" + adapters_.string()}),
                    dump("refused"));
              }),
              HasSubstr("holds LoRA adapters, but the run has none"));
}

// Adapters of another kind are not taken for those of the run, whatever their shapes.
TEST_P(Lora, AdaptersOfAnotherKindAreRefusedByTheFieldThatSaysSo) {
  const fs::path changed = temp_.path() / "changed";
  fs::copy(adapters_, changed);
  const auto good = parse_json(read_file(adapters_ / "adapter_config.json"));
  const std::pair<const char*, nlohmann::json> kFields[] = {
      {"peft_type", "IA3"},
      {"peft_type", nullptr},
      {"bias", "all"},
      {"fan_in_fan_out", !good.value("fan_in_fan_out", false)},
      {"use_rslora", true},
      {"use_dora", true},
      {"rank_pattern", {{"q_proj", 2}}},
      {"alpha_pattern", {{"q_proj", 1}}},
      {"modules_to_save", {"lm_head"}},
      {"layers_to_transform", {0}},
      {"lora_bias", true},
      {"layer_replication", {{0, 1}}},
      {"target_parameters", {"mlp.experts.gate_up_proj"}},
      {"r", 3},
      {"lora_alpha", "16"}};
  for (const auto& [field, value] : kFields) {
    auto config = good;
    config[field] = value;
    std::ofstream(changed / "adapter_config.json") << config;
    try {
      support::train(words("lora", {"--checkpoint.initial_load_path=" + changed.string()}),
                     dump("refused"));
      ADD_FAILURE() << field << " = " << value << " was accepted";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("adapter_config.json"));
      EXPECT_THAT(error.what(), HasSubstr(field));
    }
  }
}

const auto kNameOf = [](const auto& info) { return info.param; };
INSTANTIATE_TEST_SUITE_P(All, Lora, testing::Values("qwen3", "gpt2"), kNameOf);

// The rows of q and k lie in another order in native Llama 3 than in its files, and so do those of
// B.
TEST(NativeLora, AdaptersFollowTheRowsOfTheirWeights) {
  log::set_level(log::Level::error);
  const support::TempFolder temp("native_lora");
  // Not one token over and over: attention would see equal values, and q would have no gradient.
  std::vector<int32_t> ids(2 * 2 * 32);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i * 37 % 251);
  support::write_tokens(temp.path() / "tokens.safetensors", {2, 2, 32}, ids, ids);
  const Words words = {"--module=llama3",
                       "--dataloader.dataset=tokens",
                       "--dataloader.dataset_path=" + (temp.path() / "tokens.safetensors").string(),
                       "--training.local_batch_size=2",
                       "--training.seq_len=32",
                       "--training.steps=2",
                       "--debug.seed=3",
                       "--checkpoint.enable",
                       "--metrics.peak_flops=1e12"};
  support::train(
      support::join(words, {"--config=llama3_debugmodel_lora", "--checkpoint.last_save_in_hf"}),
      temp.path() / "lora");
  support::train(
      support::join(words, {"--config=llama3_debugmodel", "--checkpoint.create_seed_checkpoint"}),
      temp.path() / "seed");
  convert({.from = temp.path() / "lora/checkpoint/step-2", .to = temp.path() / "merged"});
  convert({.from = temp.path() / "seed/checkpoint/step-0", .to = temp.path() / "base"});
  const safetensors::Weights merged(temp.path() / "merged"), base(temp.path() / "base");
  const File adapters(temp.path() / "lora/checkpoint/export/step-2/adapter_model.safetensors");
  for (const std::string module :
       {"model.layers.1.self_attn.q_proj", "model.layers.1.self_attn.v_proj", "lm_head"}) {
    const std::string name = "base_model.model." + module;
    const auto a = floats(adapters.at(name + ".lora_A.weight"));
    const auto b = floats(adapters.at(name + ".lora_B.weight"));
    auto expected = floats(base.at(module + ".weight"));
    const auto rank = static_cast<size_t>(adapters.at(name + ".lora_A.weight").shape[0]);
    const size_t in = a.size() / rank;
    float largest = 0;
    for (size_t r = 0; r < b.size() / rank; ++r)
      for (size_t k = 0; k < rank; ++k)
        for (size_t c = 0; c < in; ++c) {
          const float delta = 2 * b[r * rank + k] * a[k * in + c];
          expected[r * in + c] += delta;
          largest = std::max(largest, std::abs(delta));
        }
    EXPECT_GT(largest, 1e-5F) << module;
    expect_near(floats(merged.at(module + ".weight")), expected, 1e-6, module);
  }
}

}  // namespace
}  // namespace rhea
