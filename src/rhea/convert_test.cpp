// Conversions between the forms of a model, and what inspect says of each.
#include "rhea/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "rhea/base/error.h"
#include "rhea/base/json.h"
#include "rhea/base/mapped_file.h"
#include "rhea/components/checkpoint/manifest.h"
#include "rhea/components/safetensors/reader.h"
#include "rhea/components/safetensors/writer.h"
#include "rhea/components/tokenizer/tokenizer.h"
#include "rhea/inspect.h"
#include "rhea/published_model.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"

namespace rhea {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using support::error_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const fs::path kTestData = fs::path(RHEA_SOURCE_DIR) / "tests/data";
const fs::path kTiedLlama = kTestData / "golden/models/llama3_rope_tied";

class Convert : public testing::Test {
 protected:
  fs::path out(const char* name) const { return temporary_.path() / name; }
  static void expect_same_weights(const fs::path& a, const fs::path& b) {
    const safetensors::Weights first(a), second(b);
    ASSERT_EQ(first.names(), second.names());
    for (const std::string& name : first.names()) {
      const auto &x = first.at(name), &y = second.at(name);
      EXPECT_EQ(x.describe(), y.describe()) << name;
      EXPECT_TRUE(std::ranges::equal(x.bytes, y.bytes)) << name;
    }
  }
  static std::string inspected(const fs::path& path, bool tensors = true) {
    std::ostringstream text;
    inspect({.path = path, .tensors = tensors}, text);
    return text.str();
  }
  support::TempFolder temporary_;
};

TEST_F(Convert, AHuggingFaceFolderKeepsNamesAndBytes) {
  convert({.from = kTiedLlama, .to = out("hf")});
  expect_same_weights(kTiedLlama, out("hf"));
  const json config = parse_json(read_file(out("hf") / "config.json"));
  EXPECT_EQ(config["dtype"], "float32");
  EXPECT_TRUE(config.contains("rope_parameters"));
}

TEST_F(Convert, ShardsHaveALimitAndAnIndex) {
  convert({.from = kTiedLlama, .to = out("hf"), .max_shard_bytes = 30'000});
  const auto index = safetensors::read_index(out("hf") / safetensors::kIndexName);
  std::set<std::string> files;
  for (const auto& [name, file] : index) files.insert(file);
  EXPECT_GT(files.size(), 2U);
  expect_same_weights(kTiedLlama, out("hf"));
  EXPECT_THAT(inspected(out("hf")), HasSubstr("no problems found"));
}

TEST_F(Convert, DtypeAndSpellingAreChosen) {
  convert({.from = kTiedLlama,
           .to = out("hf"),
           .export_dtype = DType::bf16,
           .spelling = checkpoint::ConfigSpelling::v4});
  const json config = parse_json(read_file(out("hf") / "config.json"));
  EXPECT_EQ(config["torch_dtype"], "bfloat16");
  EXPECT_FALSE(config.contains("rope_parameters"));
  EXPECT_EQ(config["rope_scaling"]["rope_type"], "llama3");
  const safetensors::Weights weights(out("hf"));
  for (const std::string& name : weights.names())
    EXPECT_EQ(weights.at(name).dtype, safetensors::ElementType::BF16);
}

TEST_F(Convert, ThroughANativeCheckpointAndBack) {
  for (const char* module : {"", "llama3"}) {
    const fs::path native = out(*module == '\0' ? "hf_names" : module);
    convert({.from = kTiedLlama,
             .to = native,
             .format = ConvertOptions::Format::native,
             .module = module});
    EXPECT_THAT(inspected(native), AllOf(HasSubstr("weights only"), HasSubstr("no problems")));
    const fs::path back = out(*module == '\0' ? "back" : "back_llama3");
    convert({.from = native, .to = back});
    expect_same_weights(kTiedLlama, back);
  }
  EXPECT_THAT(inspected(out("llama3")), HasSubstr("layers.0.attention.qkv_linear.wq.weight"));
  EXPECT_THAT(error_of([&] {
                convert({.from = kTiedLlama,
                         .to = out("x"),
                         .format = ConvertOptions::Format::native,
                         .module = "qwen3"});
              }),
              HasSubstr("needs 'qwen3'"));
}

TEST_F(Convert, GgufBecomesAModelThatLoads) {
  convert({.from = kTestData / "gguf/llama.gguf", .to = out("hf")});
  const PublishedModel model(out("hf"));
  EXPECT_EQ(model.published().model_type, "llama");
  const safetensors::File golden(kTestData / "gguf/llama.safetensors");
  const safetensors::Weights weights(out("hf"));
  ASSERT_EQ(weights.names().size(), golden.tensors().size());
  for (const auto& tensor : golden.tensors())
    EXPECT_TRUE(std::ranges::equal(weights.at(tensor.name).bytes, tensor.bytes)) << tensor.name;
  const auto tokenizer = tokenizer::load_tokenizer(out("hf"));
  EXPECT_EQ(tokenizer->encode("abc<|end|>", {.add_bos = false}),
            (std::vector<int32_t>{256, 99, 258}));
  EXPECT_THAT(inspected(out("hf")), HasSubstr("no problems found"));
  convert({.from = kTestData / "gguf/llama.gguf",
           .to = out("native"),
           .format = ConvertOptions::Format::native});
  EXPECT_FALSE(fs::exists(out("native.hf-tmp")));
  convert({.from = out("native"), .to = out("again")});
  expect_same_weights(out("hf"), out("again"));
  for (const char* file :
       {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"})
    EXPECT_EQ(read_file(out("hf") / file), read_file(out("again") / file)) << file;
}

// A run may take its tokenizer from elsewhere; what else lies beside the weights does not.
TEST_F(Convert, ARunsOwnTokenizerLeavesTheGenerationConfig) {
  const fs::path tokenizer = fs::path(RHEA_SOURCE_DIR) / "tests/assets/tokenizer";
  fs::create_directories(out("assets"));
  for (const char* file : {"config.json", "model.safetensors"})
    fs::create_symlink(kTiedLlama / file, out("assets") / file);
  std::ofstream(out("assets") / "generation_config.json") << R"({"temperature": 0.6})";
  convert({.from = out("assets"), .to = out("run"), .format = ConvertOptions::Format::native});
  const fs::path file = out("run") / checkpoint::kManifestName;
  checkpoint::Manifest manifest = checkpoint::parse_manifest(read_file(file), file.string());
  json run = parse_json(manifest.state.at("config"));
  run["tokenizer"]["path"] = tokenizer.string();
  manifest.state["config"] = run.dump();
  std::ofstream(file) << checkpoint::format_manifest(manifest);
  convert({.from = out("run"), .to = out("hf")});
  EXPECT_EQ(read_file(out("hf") / "generation_config.json"), R"({"temperature": 0.6})");
  EXPECT_EQ(read_file(out("hf") / "tokenizer.json"), read_file(tokenizer / "tokenizer.json"));
}

// The config that is made of the metadata asks for exactly the tensors that there are.
TEST_F(Convert, EveryArchitectureOfGgufLoads) {
  for (const char* name : {"llama", "llama_spm", "qwen2", "gemma", "gemma2", "gemma3", "olmo2",
                           "granite", "phi3", "phi3_long", "mixtral", "qwen2moe", "qwen3moe"}) {
    convert({.from = kTestData / fmt::format("gguf/{}.gguf", name), .to = out(name)});
    EXPECT_EQ(error_of([&] { PublishedModel model(out(name)); }), "no error") << name;
  }
}

// The model of kTiedLlama with one weight in FP8, all ones times the scale 2.
class ConvertFp8 : public Convert {
 protected:
  void SetUp() override {
    fs::create_directories(out("fp8"));
    const safetensors::File original(kTiedLlama / "model.safetensors");
    const std::vector<uint8_t> ones(static_cast<size_t>(original.at(name_).num_elements()), 0x38);
    const std::vector<float> scale = {2};
    std::vector<safetensors::TensorView> tensors = original.tensors();
    for (auto& tensor : tensors)
      if (tensor.name == name_) {
        tensor.dtype = safetensors::ElementType::F8_E4M3;
        tensor.bytes = std::as_bytes(std::span(ones));
      }
    tensors.push_back({name_ + "_scale_inv",
                       safetensors::ElementType::F32,
                       {1, 1},
                       std::as_bytes(std::span(scale))});
    safetensors::write_file(out("fp8") / "model.safetensors", tensors);
    write_config("fp8");
  }
  void write_config(const char* method) {
    json config = parse_json(read_file(kTiedLlama / "config.json"));
    config["quantization_config"] = {{"quant_method", method}, {"weight_block_size", {128, 128}}};
    std::ofstream(out("fp8") / "config.json") << config;
  }
  const std::string name_ = "model.layers.0.mlp.down_proj.weight";
};

TEST_F(ConvertFp8, QuantizedTensorsAreDecoded) {
  convert({.from = out("fp8"), .to = out("plain")});
  const safetensors::Weights weights(out("plain"));
  EXPECT_EQ(weights.names(), safetensors::Weights(kTiedLlama).names());
  EXPECT_EQ(weights.at(name_).dtype, safetensors::ElementType::BF16);
  EXPECT_EQ(safetensors::read_vector<float>(weights.at(name_))[7], 2);
  EXPECT_THAT(read_file(out("plain") / "config.json"), Not(HasSubstr("quantization_config")));
}

TEST_F(ConvertFp8, TheModelLoads) {
  const ir::Type type{DType::f32,
                      safetensors::File(kTiedLlama / "model.safetensors").at(name_).shape};
  EXPECT_EQ(static_cast<const float*>(PublishedModel(out("fp8")).data(name_, type))[7], 2);
  write_config("awq");
  EXPECT_THAT(error_of([&] { PublishedModel{out("fp8")}; }), HasSubstr("awq"));
  EXPECT_THAT(error_of([&] { convert({.from = out("fp8"), .to = out("plain")}); }),
              HasSubstr("awq"));
}

TEST_F(Convert, NothingIsOverwritten) {
  fs::create_directories(out("hf") / "mine");
  EXPECT_THAT(error_of([&] { convert({.from = kTiedLlama, .to = out("hf")}); }),
              HasSubstr("is there already"));
  EXPECT_THAT(error_of([&] { convert({.from = out("none"), .to = out("x")}); }),
              HasSubstr("does not exist"));
  std::ofstream(out("text")) << "text";
  EXPECT_THAT(error_of([&] { convert({.from = out("text"), .to = out("x")}); }),
              HasSubstr("no GGUF file"));
  EXPECT_FALSE(fs::exists(out("x")));
}

TEST_F(Convert, AGgufFileInThePlaceOfAFolderIsPointedHere) {
  EXPECT_THAT(error_of([&] { PublishedModel{kTestData / "gguf/llama.gguf"}; }),
              AllOf(HasSubstr("is a file"), HasSubstr("rhea convert --from")));
}

TEST_F(Convert, SizesAreParsed) {
  EXPECT_EQ(parse_size("5GB"), 5'000'000'000U);
  EXPECT_EQ(parse_size("1.5MiB"), 1'572'864U);
  EXPECT_EQ(parse_size("77"), 77U);
  for (const char* bad : {"", "GB", "-1GB", "5 GB", "5TBB", "nan", "1e30GB"})
    EXPECT_THAT(error_of([&] { parse_size(bad); }), HasSubstr("is no size")) << bad;
}

TEST_F(Convert, InspectNamesProblems) {
  EXPECT_THAT(inspected(kTiedLlama), AllOf(HasSubstr("model.layers.0.self_attn.q_proj.weight"),
                                           HasSubstr("no problems"), HasSubstr("model: llama")));
  EXPECT_THAT(inspected(kTiedLlama, false), Not(HasSubstr("q_proj")));
  EXPECT_THAT(inspected(kTestData / "gguf/qwen2.gguf"),
              AllOf(HasSubstr("GGUF version 3"), HasSubstr("qwen2.block_count: 1"),
                    HasSubstr("Q5_0"), HasSubstr("no problems")));
  convert({.from = kTiedLlama, .to = out("hf"), .max_shard_bytes = 30'000});
  std::ofstream(out("hf") / "stray.safetensors") << "x";
  std::string config = read_file(out("hf") / "config.json");
  config.replace(config.find("\"vocab_size\": "), 14, "\"vocab_size\": 1");
  std::ofstream(out("hf") / "config.json") << config;
  EXPECT_THAT(inspected(out("hf")),
              AllOf(HasSubstr("2 problem(s)"), HasSubstr("stray.safetensors is not read"),
                    HasSubstr("of another shape"), HasSubstr("model.embed_tokens.weight")));
}

}  // namespace
}  // namespace rhea
