// Rules about weights and configs of published folders, each by its number in the list of mistakes
// that trainers really made. W5, W10 and W14 with small tensors: hf_weights_test.cpp; W8, W9:
// moe_test.cpp; W13: experts_test.cpp; W15: checkpoint/quantized_test.cpp; W16: attention_golden;
// W17, W20: hf_test.cpp; W18: start_test.cpp; W6, W21: published_test.cpp and
// override_config_test.cpp.
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/base/text.h"
#include "rhea/components/checkpoint/step_writer.h"
#include "rhea/components/safetensors/reader.h"
#include "rhea/components/safetensors/writer.h"
#include "rhea/config/json.h"
#include "rhea/models/hf/config_json.h"
#include "rhea/models/model_size.h"
#include "rhea/models/qwen3/qwen3.h"
#include "rhea/models/registry.h"
#include "rhea/nn/rope_tables.h"
#include "rhea/published_model.h"
#include "rhea/score.h"
#include "tests/runs/run_test.h"
#include "tests/support/error_of.h"

namespace rhea {
namespace {

using models::hf::parse_config;
using nlohmann::json;
using safetensors::TensorView;
using support::error_of;

const fs::path kModels = RHEA_SOURCE_DIR "/tests/data/golden/models";

class Weights : public RunTest {
 protected:
  // The golden folder with its tensors renamed, and `more`; a tensor that gets no name is left out.
  fs::path changed(const std::string& name,
                   const std::function<std::string(const std::string&)>& rename,
                   const std::vector<TensorView>& more = {}) {
    const fs::path folder = temp_.path() / "changed";
    fs::create_directories(folder);
    fs::copy_file(kModels / name / "config.json", folder / "config.json",
                  fs::copy_options::overwrite_existing);
    const safetensors::File file(kModels / name / "model.safetensors");
    std::vector<TensorView> tensors = more;
    for (TensorView tensor : file.tensors()) {
      tensor.name = rename(tensor.name);
      if (!tensor.name.empty()) tensors.push_back(tensor);
    }
    safetensors::write_file(folder / "model.safetensors", tensors);
    return folder;
  }
  double loss(const fs::path& model, const std::string& golden) {
    // Not beside a config.json: a folder of a model is never written to.
    const fs::path results = temp_.path() / "results";
    fs::create_directories(results);
    const fs::path out = results / "scored.safetensors";
    score({.model = model, .input = kModels / golden / "golden.safetensors", .output = out}, pool_);
    return safetensors::read_vector<double>(safetensors::File(out).at("loss"))[0];
  }
  static json golden(const std::string& name) {
    return parse_json(read_file(kModels / name / "golden.json"));
  }
  // One step at rate 0 from `folder`, and its export.
  Outcome train_nothing(const fs::path& folder, const Words& module) {
    Outcome outcome = train(support::join(
        module,
        {"--hf_assets_path=" + folder.string(), "--dataloader.dataset=random",
         "--dataloader.dataset_path=None", "--training.seq_len=16", "--training.steps=1",
         "--training.local_batch_size=1", "--optimizer.param_groups.0.optimizer_kwargs.lr=0",
         "--checkpoint.enable", "--checkpoint.initial_load_in_hf",
         "--checkpoint.last_save_model_only", "--checkpoint.last_save_in_hf"}));
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    return outcome;
  }
  fs::path exported(const fs::path& folder) {
    train_nothing(folder, kPublished);
    return dump() / "checkpoint/export/step-1";
  }
  const Words kPublished = {"--module=hf", "--config=transformers_modeling_backend_full"};
  ThreadPool pool_{2};
};

TEST_F(Weights, W1AMissingHeadIsNamedWithItsRemedy) {
  const fs::path folder = changed(
      "qwen3", [](const std::string& name) { return name == "lm_head.weight" ? "" : name; });
  const std::string error = error_of([&] { PublishedModel model(folder); });
  EXPECT_THAT(error, HasSubstr("lm_head.weight"));
  EXPECT_THAT(error, HasSubstr("tie_word_embeddings"));
}

// W2, W3: a tied model has no head in its file, before and after; all else comes out as it went in.
TEST_F(Weights, W2W3KeysAndBytesOfAnUntrainedExportAreThoseOfTheInput) {
  for (const char* name : {"qwen3_tied", "qwen3", "llama_bias"}) {
    fs::remove_all(dump());
    const safetensors::Weights before(kModels / name), after(exported(kModels / name));
    EXPECT_EQ(before.names(), after.names()) << name;
    for (const std::string& tensor : before.names()) {
      EXPECT_EQ(before.at(tensor).shape, after.at(tensor).shape) << tensor;
      EXPECT_TRUE(std::ranges::equal(before.at(tensor).bytes, after.at(tensor).bytes)) << tensor;
    }
  }
}

std::map<std::string, nn::Shape> shapes(const std::string& config) {
  ir::Graph graph;
  nn::Trace trace(graph, {.num_tokens = 4, .seq_len = 4});
  nn::logits(trace, parse_config(config, "config.json").decoder);
  std::map<std::string, nn::Shape> found;
  for (const auto& parameter : trace.parameters())
    for (const auto& part : parameter.parts) {
      nn::Shape shape = parameter.shape;
      shape[0] = part.row_end - part.row_begin;
      found[part.fqn] = shape;
    }
  return found;
}

TEST_F(Weights, W4HeadDimIsItsOwnNumber) {
  const std::string sizes = R"({"model_type": "qwen3", "hidden_size": 2560, "num_hidden_layers": 1,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 64,
    "vocab_size": 128, "max_position_embeddings": 64)";
  auto found = shapes(sizes + R"(, "head_dim": 128})");
  EXPECT_EQ(found.at("model.layers.0.self_attn.q_proj.weight"), (nn::Shape{4096, 2560}));
  EXPECT_EQ(found.at("model.layers.0.self_attn.k_proj.weight"), (nn::Shape{1024, 2560}));
  EXPECT_EQ(found.at("model.layers.0.self_attn.o_proj.weight"), (nn::Shape{2560, 4096}));
  const std::string llama = R"({"model_type": "llama", "hidden_size": 96, "num_hidden_layers": 1,
    "num_attention_heads": 6, "intermediate_size": 64, "vocab_size": 128})";
  EXPECT_EQ(shapes(llama).at("model.layers.0.self_attn.q_proj.weight"), (nn::Shape{96, 96}));
}

TEST_F(Weights, W7AScalingChangesTheFrequencies) {
  const auto frequencies = [](const std::string& rest) {
    const std::string text = R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1,
      "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 128, "rope_theta": 1e6,
      "max_position_embeddings": 64)" +
                             rest + "}";
    ir::Graph graph;
    nn::Trace trace(graph, {.num_tokens = 4, .seq_len = 4});
    nn::logits(trace, parse_config(text, "config.json").decoder);
    return nn::inverse_frequencies(trace.rope_specs().at(0), 256);
  };
  const auto plain = frequencies("");
  EXPECT_NEAR(plain[1], std::pow(1e6, -2.0 / 16), 1e-12) << "W12: theta of the file";
  for (const char* scaling :
       {R"("rope_type": "linear", "factor": 4)", R"("rope_type": "dynamic", "factor": 4)",
        R"("rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 16)",
        R"("rope_type": "llama3", "factor": 4, "low_freq_factor": 1, "high_freq_factor": 4,
           "original_max_position_embeddings": 16)",
        R"("rope_type": "longrope", "factor": 4, "original_max_position_embeddings": 16,
           "short_factor": [1, 1, 1, 1, 1, 1, 1, 1], "long_factor": [2, 2, 2, 2, 2, 2, 2, 2])"})
    EXPECT_NE(frequencies(R"(, "rope_scaling": {)" + std::string(scaling) + "}"), plain) << scaling;
}

TEST_F(Weights, W10AKeyWithASuffixIsMissingAndUnexpected) {
  const fs::path folder = changed("llama", [](const std::string& name) {
    return name.ends_with("0.mlp.up_proj.weight") ? name + ".0" : name;
  });
  const std::string error = error_of([&] { PublishedModel model(folder); });
  EXPECT_THAT(error, HasSubstr("missing"));
  EXPECT_THAT(error, HasSubstr("unexpected"));
  EXPECT_THAT(error, HasSubstr("model.layers.0.mlp.up_proj.weight.0"));
}

TEST_F(Weights, W11SwappedNormsOfOneShapeChangeTheLoss) {
  const double expected = golden("llama").at("loss");
  EXPECT_NEAR(loss(kModels / "llama", "llama"), expected, 1e-5);
  const std::string input = "model.layers.0.input_layernorm.weight";
  const std::string post = "model.layers.0.post_attention_layernorm.weight";
  const fs::path folder = changed("llama", [&](const std::string& name) {
    return name == input ? post : name == post ? input : name;
  });
  EXPECT_GT(std::abs(loss(folder, "llama") - expected), 1e-3);
}

TEST_F(Weights, W12TheFileBeatsTheDefaults) {
  const auto decoder = parse_config(
                           R"({"model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 1,
          "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 64,
          "vocab_size": 128, "rms_norm_eps": 3e-4, "rope_theta": 7e6, "head_dim": 16})",
                           "config.json")
                           .decoder;
  const std::string tree = config::to_json(decoder, -1);
  EXPECT_THAT(tree, HasSubstr("\"eps\": 0.0003"));
  EXPECT_THAT(tree, Not(HasSubstr("1e-06")));
  EXPECT_THAT(tree, HasSubstr("7000000"));
}

TEST_F(Weights, W22ExpertsUnderOtherNamesAreRefused) {
  const fs::path folder = changed("gpt_oss", [](const std::string& name) {
    const auto at = name.find(".experts.");
    return at == std::string::npos ? name : name.substr(0, at) + ".expert." + name.substr(at + 9);
  });
  const std::string error = error_of([&] { PublishedModel model(folder); });
  EXPECT_THAT(error, HasSubstr("mlp.experts.gate_up_proj"));
  EXPECT_THAT(error, HasSubstr("mlp.expert.gate_up_proj"));
}

TEST_F(Weights, W19ATokenizerBeyondTheEmbeddingIsRefused) {
  const fs::path folder = temp_.path() / "model";
  fs::create_directories(folder);
  json config = parse_json(read_file(kModels / "llama/config.json"));
  config["vocab_size"] = 128256;
  std::ofstream(folder / "config.json") << config;
  std::ofstream(folder / "tokenizer.json")
      << R"({"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"},
             "added_tokens": [{"id": 128256, "content": "<|far|>", "special": true}]})";
  const Outcome outcome = train(support::join(
      kPublished, {"--hf_assets_path=" + folder.string(), "--tokenizer.path=" + folder.string()}));
  EXPECT_EQ(outcome.code, 2) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("\"<|far|>\" has id 128256"));
  EXPECT_THAT(outcome.output, HasSubstr("128256 entries"));
}

// W23: the published config of a native flavor has its parameters and flops.
TEST_F(Weights, W23NativeAndPublishedModelsHaveOneCount) {
  const auto size = [](const nn::Decoder::Config& model, int64_t seq_len) {
    ir::Graph graph;
    nn::Trace trace(graph, {.num_tokens = 1, .seq_len = 1});
    nn::logits(trace, model);
    return models::model_size(model, trace.parameters(), seq_len);
  };
  for (const char* flavor : {"0.6B", "4B", "8B", "30B-A3B"}) {
    const auto spec = models::qwen3::model_registry(flavor);
    const auto& native = models::decoder(spec);
    const auto published = parse_config(models::hf::write_config(native), "config.json").decoder;
    for (const int64_t seq_len : {4096, 8192}) {
      const auto ours = size(native, seq_len), theirs = size(published, seq_len);
      EXPECT_EQ(ours.num_parameters, theirs.num_parameters) << flavor;
      EXPECT_EQ(ours.num_active, theirs.num_active) << flavor;
      EXPECT_EQ(ours.flops_per_token, theirs.flops_per_token) << flavor;
      if (flavor == std::string("30B-A3B") && seq_len == 8192) {
        EXPECT_EQ(theirs.flops_per_token, 37'578'559'488);
      }
    }
  }
  const fs::path file = RHEA_SHARED_DIR "/data/configs/Qwen3-30B-A3B/config.json";
  if (!fs::exists(file)) GTEST_SKIP() << file << " is absent; it is read from the shared data.";
  const auto published = parse_config(read_file(file), file.string()).decoder;
  EXPECT_EQ(size(published, 8192).flops_per_token, 37'578'559'488);
}

// Weights of another model than the config.json in the checkpoint are listed, not read.
TEST_F(Weights, ACheckpointThatContradictsItsConfigListsEveryTensor) {
  const fs::path step = temp_.path() / "step-3";
  std::vector<float> values(4096);
  const std::vector<checkpoint::NamedTensor> tensors = {
      {"model.norm.weight", DType::f32, {36}, values.data()},
      {"model.layers.0.mlp.up_proj.weight", DType::f32, {64, 64}, values.data()},
      {"first.stray", DType::f32, {4}, values.data()},
      {"second.stray", DType::f32, {4}, values.data()}};
  checkpoint::write_step(
      step, {3,
             checkpoint::Manifest::Kind::model_only,
             tensors,
             {{"config", R"({"model_spec": {"name": "transformers_modeling_backend"}})"},
              {"hf_config", read_file(kModels / "qwen3/config.json")}}});
  const std::string error = error_of([&] { PublishedModel model(step, &pool_); });
  for (const char* listed :
       {"\n    first.stray", "\n    second.stray", "\n    lm_head.weight",
        "\n    model.layers.1.mlp.down_proj.weight",
        "model.layers.0.mlp.up_proj.weight: [64, 64] in the checkpoint, [52, 36] in the model"})
    EXPECT_THAT(error, HasSubstr(listed));
}

// Causal masks that files of older Transformers hold are no weights.
TEST_F(Weights, MasksOfOlderFilesAreSkipped) {
  const std::vector<uint8_t> mask(16, 1);
  const auto same = [](const std::string& name) { return name; };
  const fs::path folder = changed("codegen", same,
                                  {{"transformer.h.0.attn.causal_mask",
                                    safetensors::ElementType::BOOL,
                                    {1, 1, 4, 4},
                                    std::as_bytes(std::span(mask))}});
  EXPECT_NEAR(loss(folder, "codegen"), golden("codegen").at("loss").get<double>(), 1e-5);
}

// Of a native parameter that holds all experts, only the one that the file lacks is random; the log
// counts what was read.
TEST_F(Weights, ALoadThatIsNotStrictReadsAllThereIs) {
  const std::string left_out = "model.layers.0.mlp.experts.1.up_proj.weight";
  const fs::path folder = changed(
      "qwen3_moe_norm", [&](const std::string& name) { return name == left_out ? "" : name; });
  const safetensors::Weights before(kModels / "qwen3_moe_norm");
  int64_t num_elements = 0;
  for (const std::string& name : before.names())
    if (name != left_out) num_elements += before.at(name).num_elements();
  const std::string counted =
      fmt::format("{} tensors, {} parameters, loaded from {}; what it lacks",
                  before.names().size() - 1, with_commas(num_elements), folder.string());
  for (const Words& module : {kPublished, Words{"--module=qwen3", "--config=qwen3_from_config",
                                                "--validator.no_enable"}}) {
    fs::remove_all(dump());
    const Outcome outcome =
        train_nothing(folder, support::join(module, {"--checkpoint.no_initial_load_strict"}));
    EXPECT_THAT(outcome.output, HasSubstr("Left out: " + left_out + ": not in the files"));
    EXPECT_THAT(outcome.output, HasSubstr(counted));
    const safetensors::Weights after(dump() / "checkpoint/export/step-1");
    EXPECT_EQ(after.names(), before.names());
    for (const std::string& name : before.names())
      EXPECT_EQ(std::ranges::equal(after.at(name).bytes, before.at(name).bytes), name != left_out)
          << name;
    double sum = 0;
    for (const float x : safetensors::read_vector<float>(after.at(left_out))) sum += std::abs(x);
    EXPECT_GT(sum, 0) << "not drawn";
  }
}

}  // namespace
}  // namespace rhea
