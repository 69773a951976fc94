// Whole models in FP8 blocks (DeepSeek, Qwen) and MXFP4 (GPT-OSS): what is scored, converted and
// trained is their dequantized copy, bit for bit. The copy is made here, from the formats'
// definitions.
#include <array>
#include <cmath>
#include <fstream>
#include <list>
#include <nlohmann/json.hpp>
#include <random>

#include "rhea/base/json.h"
#include "rhea/base/thread_pool.h"
#include "rhea/components/safetensors/reader.h"
#include "rhea/components/safetensors/writer.h"
#include "rhea/convert.h"
#include "rhea/models/hf/config_json.h"
#include "rhea/nn/trace.h"
#include "rhea/parameter_tensors.h"
#include "rhea/score.h"
#include "tests/runs/run_test.h"

namespace rhea {
namespace {

using nlohmann::json;
using safetensors::ElementType;
using Shape = std::vector<int64_t>;

const fs::path kModels = RHEA_SOURCE_DIR "/tests/data/golden/models";
constexpr int64_t kBlock = 128;  // rows and columns of one FP8 scale
constexpr int64_t kGroup = 32;   // MXFP4 codes of one scale

struct Family {
  const char* golden;  // whose config.json it has, but for these sizes
  const char* sizes;
  bool is_mxfp4;
};

float value_of_e4m3(uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const double size =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return static_cast<float>(code < 128 ? size : -size);
}

float value_of_e2m1(int code) {
  constexpr std::array kSizes = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
  const float size = kSizes[static_cast<size_t>(code & 7)];
  return code < 8 ? size : -size;
}

size_t count(const Shape& shape) {
  size_t product = 1;
  for (const int64_t dim : shape) product *= static_cast<size_t>(dim);
  return product;
}

// Tensors with their bytes.
class Tensors {
 public:
  template <class T>
  void add(const std::string& name, ElementType type, const Shape& shape,
           const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    const auto& kept = data_.emplace_back(bytes.begin(), bytes.end());
    views_.push_back({name, type, shape, kept});
  }
  void write(const fs::path& folder, const json& config) const {
    fs::create_directories(folder);
    safetensors::write_file(folder / "model.safetensors", views_);
    std::ofstream(folder / "config.json") << config;
  }

 private:
  std::list<std::vector<std::byte>> data_;
  std::vector<safetensors::TensorView> views_;
};

class Quantized : public RunTest, public testing::WithParamInterface<Family> {
 protected:
  // The model as it is published, and its copy in float32.
  void SetUp() override {
    json config = parse_json(read_file(kModels / GetParam().golden / "config.json"));
    config.update(parse_json(GetParam().sizes));
    ir::Graph graph;
    nn::Trace trace(graph, {.num_tokens = 4, .seq_len = 4});
    const auto published = models::hf::parse_config(config.dump(), "config.json");
    nn::logits(trace, published.decoder);
    std::vector<checkpoint::NamedTensor> tensors;
    for (const auto* list : {&trace.parameters(), &trace.constants()})
      for (const auto& parameter : *list) add_parts(tensors, parameter, DType::f32, nullptr);
    for (const auto& tensor : tensors) add(tensor.name, tensor.shape);
    dequantized_.write(plain_, config);
    config["quantization_config"] =
        GetParam().is_mxfp4
            ? json{{"quant_method", "mxfp4"}}
            : json{{"quant_method", "fp8"}, {"weight_block_size", {kBlock, kBlock}}};
    stored_.write(coded_, config);
    ASSERT_GE(num_coded_, 4);
  }

  void add(const std::string& name, const Shape& shape) {
    const bool is_expert = name.find(".experts.") != std::string::npos && shape.size() == 3;
    if (GetParam().is_mxfp4 && is_expert) return add_mxfp4(name, shape);
    if (!GetParam().is_mxfp4 && name.find("_proj") != std::string::npos && shape.size() == 2)
      return add_fp8(name, shape);
    std::vector<float> values(count(shape));
    for (float& value : values) value = uniform(-0.2F, 0.2F);
    stored_.add(name, ElementType::F32, shape, values);
    dequantized_.add(name, ElementType::F32, shape, values);
  }

  void add_fp8(const std::string& name, const Shape& shape) {
    ++num_coded_;
    const int64_t rows = shape[0], columns = shape[1];
    const Shape grid = {(rows + kBlock - 1) / kBlock, (columns + kBlock - 1) / kBlock};
    std::vector<float> scales(count(grid)), values;
    for (float& scale : scales) scale = uniform(0.01F, 0.03F);
    std::vector<uint8_t> codes;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column) {
        // 0x7f and 0xff are no numbers, and large ones would hide the others.
        codes.push_back(static_cast<uint8_t>(random_() % 0x50 | (random_() & 0x80)));
        const auto block = static_cast<size_t>(row / kBlock * grid[1] + column / kBlock);
        values.push_back(value_of_e4m3(codes.back()) * scales[block]);
      }
    stored_.add(name, ElementType::F8_E4M3, shape, codes);
    stored_.add(name + "_scale_inv", ElementType::F32, grid, scales);
    dequantized_.add(name, ElementType::F32, shape, values);
  }

  // [experts, 32 groups, rows]; stored with rows and columns the other way round.
  void add_mxfp4(const std::string& name, const Shape& shape) {
    ++num_coded_;
    const int64_t experts = shape[0], columns = shape[1], rows = shape[2];
    ASSERT_EQ(columns % kGroup, 0) << name;
    const int64_t groups = columns / kGroup;
    std::vector<uint8_t> codes(count({experts, rows, groups, kGroup / 2}));
    std::vector<uint8_t> scales(count({experts, rows, groups}));
    for (uint8_t& byte : codes) byte = static_cast<uint8_t>(random_());
    for (uint8_t& scale : scales) scale = static_cast<uint8_t>(121 + random_() % 4);
    std::vector<float> values(count(shape));
    for (int64_t expert = 0; expert < experts; ++expert)
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column) {
          const int64_t group = (expert * rows + row) * groups + column / kGroup;
          const int byte = codes[static_cast<size_t>((group * kGroup + column % kGroup) / 2)];
          const int scale = scales[static_cast<size_t>(group)] - 127;
          values[static_cast<size_t>((expert * columns + column) * rows + row)] =
              std::ldexp(value_of_e2m1(column % 2 == 0 ? byte & 15 : byte >> 4), scale);
        }
    stored_.add(name + "_blocks", ElementType::U8, {experts, rows, groups, kGroup / 2}, codes);
    stored_.add(name + "_scales", ElementType::U8, {experts, rows, groups}, scales);
    dequantized_.add(name, ElementType::F32, shape, values);
  }

  float uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(random_() % 4096) / 4096;
  }

  // Of trained weights no bits but values: an update by 0 makes 0 of -0.
  void expect_copy(const fs::path& folder, bool was_trained = false) const {
    const safetensors::Weights expected(plain_), found(folder);
    EXPECT_EQ(found.names(), expected.names());
    for (const std::string& name : expected.names()) {
      EXPECT_EQ(found.at(name).shape, expected.at(name).shape) << name;
      EXPECT_EQ(found.at(name).dtype, ElementType::F32) << name;
      if (was_trained)
        EXPECT_EQ(safetensors::read_vector<float>(found.at(name)),
                  safetensors::read_vector<float>(expected.at(name)))
            << name;
      else
        EXPECT_TRUE(std::ranges::equal(found.at(name).bytes, expected.at(name).bytes)) << name;
    }
    EXPECT_FALSE(parse_json(read_file(folder / "config.json")).contains("quantization_config"));
  }

  const fs::path coded_ = temp_.path() / "coded", plain_ = temp_.path() / "plain";
  Tensors stored_, dequantized_;
  int num_coded_ = 0;
  std::mt19937 random_{7};
};

TEST_P(Quantized, ScoresAsTheCopy) {
  ThreadPool pool(2);
  const auto scored = [&](const fs::path& model) {
    const fs::path results = temp_.path() / "results" / model.filename();
    fs::create_directories(results);
    const fs::path output = results / "scored.safetensors";
    score({.model = model,
           .input = kModels / GetParam().golden / "golden.safetensors",
           .output = output,
           .gradients = true},
          pool);
    return safetensors::File(output);
  };
  const auto expected = scored(plain_), found = scored(coded_);
  EXPECT_EQ(found.tensors().size(), expected.tensors().size());
  for (const auto& tensor : expected.tensors())
    EXPECT_TRUE(std::ranges::equal(found.at(tensor.name).bytes, tensor.bytes)) << tensor.name;
  for (const float logit : safetensors::read_vector<float>(expected.at("logits")))
    ASSERT_TRUE(std::isfinite(logit));
}

TEST_P(Quantized, ConvertsToTheCopy) {
  const fs::path exact = temp_.path() / "exact", native = temp_.path() / "native",
                 back = temp_.path() / "back", half = temp_.path() / "half";
  convert({.from = coded_, .to = exact, .export_dtype = DType::f32});
  expect_copy(exact);
  convert({.from = coded_, .to = native, .format = ConvertOptions::Format::native});
  convert({.from = native, .to = back});
  expect_copy(back);
  // Without a dtype asked for, codes become bfloat16.
  convert({.from = coded_, .to = half});
  const safetensors::Weights expected(plain_), found(half);
  EXPECT_EQ(found.names(), expected.names());
  int num_halves = 0;
  for (const std::string& name : expected.names()) {
    const auto& tensor = found.at(name);
    num_halves += tensor.dtype == ElementType::BF16 ? 1 : 0;
    std::vector<std::byte> rounded(tensor.bytes.size());
    safetensors::read_as(expected.at(name),
                         tensor.dtype == ElementType::BF16 ? DType::bf16 : DType::f32, rounded);
    EXPECT_TRUE(std::ranges::equal(tensor.bytes, rounded)) << name;
  }
  EXPECT_EQ(num_halves, num_coded_);
}

TEST_P(Quantized, TrainingStartsFromTheCopyAndExportsIt) {
  const auto run_from = [&](const fs::path& model, const Words& more) {
    const fs::path dump = temp_.path() / ("run_" + model.filename().string());
    return train(support::join(
        {"--module=hf", "--config=transformers_modeling_backend_full",
         "--dump_folder=" + dump.string(), "--hf_assets_path=" + model.string(),
         "--dataloader.dataset=random", "--dataloader.dataset_path=None", "--training.seq_len=16",
         "--training.steps=1", "--training.local_batch_size=1", "--debug.seed=5",
         "--optimizer.param_groups.0.optimizer_kwargs.lr=0", "--checkpoint.enable",
         "--checkpoint.initial_load_in_hf", "--checkpoint.initial_load_path=" + model.string(),
         "--checkpoint.last_save_model_only", "--checkpoint.last_save_in_hf"},
        more));
  };
  const auto first_loss = [](const std::string& output) {
    const auto at = output.find("First loss: ");
    return at == std::string::npos ? "none" : output.substr(at, output.find('\n', at) - at);
  };
  const Outcome expected = run_from(plain_, {});
  const Outcome found = run_from(coded_, {"--checkpoint.initial_load_in_hf_quantized"});
  ASSERT_EQ(expected.code, 0) << expected.output;
  ASSERT_EQ(found.code, 0) << found.output;
  EXPECT_NE(first_loss(found.output), "none");
  EXPECT_EQ(first_loss(found.output), first_loss(expected.output));
  EXPECT_THAT(found.output,
              HasSubstr(fmt::format("{} tensors were {} and have been converted", num_coded_,
                                    GetParam().is_mxfp4 ? "MXFP4" : "FP8 blocks")));
  expect_copy(temp_.path() / "run_coded/checkpoint/export/step-1", true);
}

INSTANTIATE_TEST_SUITE_P(
    Models, Quantized,
    testing::Values(Family{"gpt_oss",
                           R"({"hidden_size": 64, "intermediate_size": 32, "dtype": "float32"})",
                           true},
                    Family{"deepseek_v3", R"({"hidden_size": 160, "intermediate_size": 144,
                                  "moe_intermediate_size": 24})",
                           false},
                    Family{"qwen3", R"({"hidden_size": 160, "intermediate_size": 260})", false}),
    [](const auto& test) { return std::string(test.param.golden); });

}  // namespace
}  // namespace rhea
