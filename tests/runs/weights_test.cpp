// Rules about weights and configs of published folders, each by its number in the list of mistakes
// that trainers really made. W5, W10 and W14 with small tensors: hf_weights_test.cpp; W16:
// attention_golden; W17, W20: hf_test.cpp; W18: start_test.cpp; W6, W21: published_test.cpp and
// override_config_test.cpp.
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
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
  // The golden folder with its tensors renamed; a tensor that gets no name is left out.
  fs::path changed(const std::string& name,
                   const std::function<std::string(const std::string&)>& rename) {
    const fs::path folder = temp_.path() / "changed";
    fs::create_directories(folder);
    fs::copy_file(kModels / name / "config.json", folder / "config.json",
                  fs::copy_options::overwrite_existing);
    const safetensors::File file(kModels / name / "model.safetensors");
    std::vector<TensorView> tensors;
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
  // The export of one step at rate 0 from `folder`.
  fs::path exported(const fs::path& folder) {
    const Outcome outcome =
        train({"--module=hf", "--config=transformers_modeling_backend_full",
               "--hf_assets_path=" + folder.string(), "--dataloader.dataset=random",
               "--dataloader.dataset_path=None", "--training.seq_len=16", "--training.steps=1",
               "--training.local_batch_size=1", "--optimizer.param_groups.0.optimizer_kwargs.lr=0",
               "--checkpoint.enable", "--checkpoint.initial_load_in_hf",
               "--checkpoint.last_save_model_only", "--checkpoint.last_save_in_hf"});
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    return dump() / "checkpoint/export/step-1";
  }
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

// W23, for the dense models: the published config of a native flavor has its parameters and flops.
TEST_F(Weights, W23NativeAndPublishedModelsHaveOneCount) {
  const auto size = [](const nn::Decoder::Config& model) {
    ir::Graph graph;
    nn::Trace trace(graph, {.num_tokens = 1, .seq_len = 1});
    nn::logits(trace, model);
    return models::model_size(model, trace.parameters(), 4096);
  };
  for (const char* flavor : {"0.6B", "4B", "8B"}) {
    const auto spec = models::qwen3::model_registry(flavor);
    const auto& native = models::decoder(spec);
    const auto published = parse_config(models::hf::write_config(native), "config.json").decoder;
    EXPECT_EQ(size(native).num_parameters, size(published).num_parameters) << flavor;
    EXPECT_EQ(size(native).flops_per_token, size(published).flops_per_token) << flavor;
  }
}

}  // namespace
}  // namespace rhea
